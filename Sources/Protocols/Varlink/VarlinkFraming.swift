// Bytes in, whole messages out: a Varlink message is a JSON object followed by one NUL. Owns the unread bytes of one
// connection; must never look inside a message, nor keep more than its reader left unread.
// Facts: the Varlink method-call page (varlink.org); the limit is ours, sd-varlink's is 16 MiB.

/// Splits a byte stream into messages. Every byte is looked at once, however the stream was cut.
public struct VarlinkFraming: Sendable {
  /// The longest call that the daemon takes, in bytes without its NUL.
  public static let limit = 1 << 20
  /// The longest reply that a client takes: a thousand devices say more than a caller may.
  public static let replyLimit = 16 << 20
  /// Storage that an idle connection may keep; there can be thousands of them.
  static let idleCapacity = 512

  /// More bytes than the limit came without a NUL: the connection cannot be understood any more.
  public struct TooLong: Error, Equatable, Sendable {}

  /// The longest message that is taken, in bytes without its NUL. It may grow while one comes.
  public var limit: Int
  private var buffer: [UInt8] = []
  /// Where the first unread message starts.
  private var head = 0
  /// There is no NUL before this position.
  private var scanned = 0

  /// Without bytes.
  public init(limit: Int = VarlinkFraming.limit) { self.limit = limit }

  /// How many bytes wait. A reader that is busy stops reading when they are many.
  public var pending: Int { buffer.count - head }

  /// The storage held, for tests.
  var capacity: Int { buffer.capacity }

  /// Takes what the connection gave.
  public mutating func append(_ bytes: some Collection<UInt8>) {
    if head > 0, head >= buffer.count - head {  // moves at most as many bytes as were read since the last move
      buffer.removeSubrange(..<head)
      scanned -= head
      head = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// Hands the next whole message to `read`, without its NUL and without a copy, or gives nil when there is none yet.
  /// The pointer is good inside `read` only. Bytes after an error are worthless: close the connection.
  public mutating func next<R>(_ read: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
    guard let end = try messageEnd() else { return nil }
    let start = head
    head = end + 1
    scanned = head
    defer { if head == buffer.count { forget() } }
    return try buffer.withUnsafeBytes { try read(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
  }

  /// Whether a whole message waits. Throws where `next` would.
  public mutating func hasMessage() throws -> Bool { try messageEnd() != nil }

  /// The next whole message, copied out.
  public mutating func next() throws -> [UInt8]? {
    try next { [UInt8]($0) }
  }

  private mutating func messageEnd() throws -> Int? {
    let end = buffer.withUnsafeBytes { bytes in bytes[scanned...].firstIndex(of: 0) }
    scanned = end ?? buffer.count
    if scanned - head > limit { throw TooLong() }
    return end
  }

  private mutating func forget() {
    if buffer.capacity > Self.idleCapacity { buffer = [] } else { buffer.removeAll(keepingCapacity: true) }
    head = 0
    scanned = 0
  }
}
