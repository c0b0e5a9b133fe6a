// The frame parser of the car. As built it parses each read separately, so a split frame and the next one are lost; as documented, or
// without that flaw, it reassembles frames.
// Facts: autott.md §2, §8 and its oracle in §10 (TCP.py: recv(1024), split at `#$#`, then at `%^%` CR LF).
//
//   TYPE 23 24 23 BODY 25 5E 25 0D 0A        documented: TYPE 23 24 23 BODY 25 5E 25, whatever line ends follow

/// A frame received by the car.
struct ReceivedFrame: Sendable, Equatable {
  var type: [UInt8]
  var body: [UInt8]

  var name: String { String(decoding: type, as: UTF8.self) }
  var text: String { String(decoding: body, as: UTF8.self) }
  /// Type and body for logs, with a dot for each byte that is not printable.
  var shown: String {
    let bytes = type.prefix(40) + (body.isEmpty ? [] : [0x20]) + body
    return String(decoding: bytes.map { (0x20...0x7E).contains($0) ? $0 : 0x2E }, as: UTF8.self)
  }
}

/// Received bytes, and the frames in them.
struct CarReceiver: Sendable {
  /// The size of one read.
  static let maxRead = 1024
  /// The size of the receive buffer of the kernel.
  static let maxHeld = 128 * 1024

  private static let divider = Array("#$#".utf8)
  private static let end = Array("%^%\r\n".utf8)
  private static let bareEnd = Array("%^%".utf8)
  private static let maxFrameLength = 64 * 1024

  private let reassembles: Bool
  /// Bytes in the kernel's buffer.
  private(set) var held: [UInt8] = []
  /// The unparsed rest of the current read.
  private var chunk: ArraySlice<UInt8> = []
  /// An incomplete frame, stored for the next read when reassembling.
  private var unfinished: [UInt8] = []

  init(reassembles: Bool) { self.reassembles = reassembles }

  var hasRoom: Bool { held.count < CarReceiver.maxHeld }

  /// Stores received bytes. Bytes beyond the buffer are lost: check `hasRoom` first.
  mutating func hold(_ bytes: [UInt8]) { held += bytes.prefix(CarReceiver.maxHeld - held.count) }

  /// Performs one read. Returns false if there are no bytes.
  mutating func read() -> Bool {
    guard !held.isEmpty else { return false }
    let count = min(held.count, CarReceiver.maxRead)
    chunk = reassembles ? (unfinished + held[..<count])[...] : Array(held[..<count])[...]
    unfinished = []
    held.removeFirst(count)
    return true
  }

  /// Returns the next frame of this read, or nil. As built, nil also discards the rest of the read.
  mutating func next() -> ReceivedFrame? {
    if reassembles { return nextWhole() }
    guard let divider = chunk.position(of: CarReceiver.divider) else { return dropRest() }
    let type = Array(chunk[..<divider])
    let rest = chunk[(divider + CarReceiver.divider.count)...]
    guard let end = rest.position(of: CarReceiver.end) else { return dropRest() }
    chunk = rest[(end + CarReceiver.end.count)...]
    return ReceivedFrame(type: type, body: Array(rest[..<end]))
  }

  /// Discards the rest of this read, and returns its length.
  @discardableResult
  mutating func drop() -> Int {
    defer { chunk = [] }
    return chunk.count
  }

  private mutating func dropRest() -> ReceivedFrame? {
    drop()
    return nil
  }

  private mutating func nextWhole() -> ReceivedFrame? {
    if chunk.isEmpty { return nil }
    while let end = chunk.position(of: CarReceiver.bareEnd) {
      let frame = chunk[..<end].drop { $0 == 0x0D || $0 == 0x0A }
      chunk = chunk[(end + CarReceiver.bareEnd.count)...]
      guard let divider = frame.position(of: CarReceiver.divider) else { continue }
      return ReceivedFrame(type: Array(frame[..<divider]), body: Array(frame[(divider + CarReceiver.divider.count)...]))
    }
    unfinished = chunk.count > CarReceiver.maxFrameLength ? [] : Array(chunk)
    return dropRest()
  }
}

extension ArraySlice<UInt8> {
  /// The position of the first occurrence of `bytes`.
  func position(of bytes: [UInt8]) -> Int? {
    guard let first = bytes.first, count >= bytes.count else { return nil }
    return (startIndex...(endIndex - bytes.count)).first { self[$0] == first && self[$0..<($0 + bytes.count)].elementsEqual(bytes) }
  }
}
