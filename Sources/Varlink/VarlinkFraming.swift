// Splits a byte stream into Varlink messages. Each message is a JSON object followed by one NUL. The type holds the unread bytes of one
// connection, and does not inspect messages.
// Source: the Varlink method-call page (varlink.org). Varlink sets no length limit; sd-varlink's limit is 16 MiB.

import Protocols

/// Splits a byte stream into messages. Every byte is examined once, no matter how the stream was split.
public struct VarlinkFraming: Sendable {
  /// The maximum length of a call to the daemon, in bytes without its NUL.
  public static let callLimit = 1 << 20
  /// The maximum length of a reply to a client: replies about many devices are longer than calls.
  public static let replyLimit = 16 << 20
  /// The maximum storage of an idle connection, in bytes; there can be thousands.
  static let idleCapacity = 512

  /// More bytes than the limit have arrived without a NUL, so the connection must be closed.
  public struct TooLong: Error, Equatable, Sendable {}

  /// The maximum length of a message, in bytes without its NUL. It can be raised while a message is arriving.
  public var limit: Int
  private var buffer: [UInt8] = []
  /// The start of the first unread message.
  private var head = 0
  /// The position up to which no NUL was found.
  private var scanned = 0

  /// Creates an empty buffer.
  public init(limit: Int = VarlinkFraming.callLimit) { self.limit = limit }

  /// The number of unread bytes. If there are too many, a busy connection stops reading from its socket.
  public var pending: Int { buffer.count - head }

  /// The allocated storage in bytes, for tests.
  var capacity: Int { buffer.capacity }

  /// Appends received bytes.
  public mutating func append(_ bytes: some Collection<UInt8>) {
    if head > 0, head >= buffer.count - head {  // amortized: the unread bytes are no more than the read ones
      buffer.removeSubrange(..<head)
      scanned -= head
      head = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// Passes the next whole message to `read`, without its NUL and without a copy; returns nil if there is none yet.
  /// The pointer is valid only inside `read`. After an error the connection must be closed.
  public mutating func next<R>(_ read: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
    guard let end = try messageEnd() else { return nil }
    let start = head
    head = end + 1
    scanned = head
    defer { if head == buffer.count { reset() } }
    return try buffer.withUnsafeBytes { try read(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
  }

  /// Whether a whole message is available. Throws like `next`.
  public mutating func hasMessage() throws -> Bool { try messageEnd() != nil }

  /// A copy of the next whole message.
  public mutating func next() throws -> [UInt8]? {
    try next { [UInt8]($0) }
  }

  private mutating func messageEnd() throws -> Int? {
    let end = buffer.withUnsafeBytes { bytes in bytes[scanned...].firstIndex(of: 0) }
    scanned = end ?? buffer.count
    if scanned - head > limit { throw TooLong() }
    return end
  }

  private mutating func reset() {
    if buffer.capacity > Self.idleCapacity { buffer = [] } else { buffer.removeAll(keepingCapacity: true) }
    head = 0
    scanned = 0
  }
}
