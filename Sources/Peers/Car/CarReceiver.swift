// How the car takes frames out of what it reads: as built, chunk by chunk with no memory between two of them, so that a
// frame that is cut is lost and the next one with it; on request, and as documented, as a careful program would.
// It knows no types. Facts: autott.md §2, §8 and its oracle in §10 (TCP.py: recv(1024), split at `#$#`, then at `%^%` CR LF).
//
//   TYPE 23 24 23 BODY 25 5E 25 0D 0A        documented: TYPE 23 24 23 BODY 25 5E 25, whatever line ends follow

/// A frame as the car takes it.
struct ReceivedFrame: Sendable, Equatable {
  var type: [UInt8]
  var body: [UInt8]

  var name: String { String(decoding: type, as: UTF8.self) }
  var text: String { String(decoding: body, as: UTF8.self) }
  /// For people: type and body, with a dot for whatever is not printable.
  var shown: String {
    let bytes = type.prefix(40) + (body.isEmpty ? [] : [0x20]) + body
    return String(decoding: bytes.map { (0x20...0x7E).contains($0) ? $0 : 0x2E }, as: UTF8.self)
  }
}

/// What has come in and was not taken yet.
struct CarReceiver: Sendable {
  /// One read of the car.
  static let maxRead = 1024
  /// What the kernel holds for a program that does not read; more is not acknowledged.
  static let maxHeld = 128 * 1024

  private static let divider = Array("#$#".utf8)
  private static let end = Array("%^%\r\n".utf8)
  private static let bareEnd = Array("%^%".utf8)
  private static let maxFrameLength = 64 * 1024

  private let reassembles: Bool
  /// Not read by the car yet.
  private(set) var held: [UInt8] = []
  /// The read it is at, from where it has come to.
  private var chunk: ArraySlice<UInt8> = []
  /// What a careful program keeps for its next read.
  private var unfinished: [UInt8] = []

  init(reassembles: Bool) { self.reassembles = reassembles }

  var hasRoom: Bool { held.count < CarReceiver.maxHeld }

  /// Bytes arrive; what finds no room is lost here, as no link would do: look at `hasRoom` first.
  mutating func hold(_ bytes: [UInt8]) { held += bytes.prefix(CarReceiver.maxHeld - held.count) }

  /// One read. False: nothing is there.
  mutating func read() -> Bool {
    guard !held.isEmpty else { return false }
    let count = min(held.count, CarReceiver.maxRead)
    chunk = reassembles ? (unfinished + held[..<count])[...] : Array(held[..<count])[...]
    unfinished = []
    held.removeFirst(count)
    return true
  }

  /// The next frame of this read; nil when there is none in the rest of it. As built that rest is gone.
  mutating func next() -> ReceivedFrame? {
    if reassembles { return nextWhole() }
    guard let divider = chunk.position(of: CarReceiver.divider) else { return dropRest() }
    let type = Array(chunk[..<divider])
    let rest = chunk[(divider + CarReceiver.divider.count)...]
    guard let end = rest.position(of: CarReceiver.end) else { return dropRest() }
    chunk = rest[(end + CarReceiver.end.count)...]
    return ReceivedFrame(type: type, body: Array(rest[..<end]))
  }

  /// How much of this read is left, which now nobody looks at.
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
  /// Where these bytes stand first.
  func position(of bytes: [UInt8]) -> Int? {
    guard let first = bytes.first, count >= bytes.count else { return nil }
    return (startIndex...(endIndex - bytes.count)).first { self[$0] == first && self[$0..<($0 + bytes.count)].elementsEqual(bytes) }
  }
}
