// The frame parser of the car. In the as-built dialect, the car parses each read separately: a frame that is split across two reads is
// lost, and so is the next frame. In the documented dialect, or if this flaw is removed, the car reassembles frames.
// Source: TCP.py of task123/AutoTT: recv(1024), split at `#$#`, then at `%^%` CR LF.
//
//   TYPE 23 24 23 BODY 25 5E 25 0D 0A        documented: TYPE 23 24 23 BODY 25 5E 25, and optional line ends

/// A frame received by the car.
struct ReceivedFrame: Sendable, Equatable {
  var type: [UInt8]
  var body: [UInt8]

  var name: String { String(decoding: type, as: UTF8.self) }
  var text: String { String(decoding: body, as: UTF8.self) }
  /// Type and body for logs, with a dot for each byte that is not printable.
  var logText: String {
    let bytes = type.prefix(40) + (body.isEmpty ? [] : [0x20]) + body
    return String(decoding: bytes.map { (0x20...0x7E).contains($0) ? $0 : 0x2E }, as: UTF8.self)
  }
}

/// Received bytes, and the frames in them.
struct CarReceiver: Sendable {
  /// The maximum size of one read, in bytes.
  static let readSize = 1024
  /// The size of the kernel's receive buffer, in bytes.
  static let kernelBufferSize = 128 * 1024

  private static let divider = Array("#$#".utf8)
  private static let end = Array("%^%\r\n".utf8)
  private static let bareEnd = Array("%^%".utf8)
  private static let maxFrameLength = 64 * 1024

  private let reassembles: Bool
  /// Bytes in the kernel's buffer.
  private(set) var kernelBuffer: [UInt8] = []
  /// The part of the current read that has not been parsed yet.
  private var chunk: ArraySlice<UInt8> = []
  /// An incomplete frame, stored for the next read when reassembling.
  private var unfinished: [UInt8] = []

  init(reassembles: Bool) { self.reassembles = reassembles }

  var hasRoom: Bool { kernelBuffer.count < CarReceiver.kernelBufferSize }

  /// Stores bytes in the kernel's buffer. Bytes beyond its size are lost: check `hasRoom` first.
  mutating func store(_ bytes: [UInt8]) { kernelBuffer += bytes.prefix(CarReceiver.kernelBufferSize - kernelBuffer.count) }

  /// Reads from the kernel's buffer. Returns false if it is empty.
  mutating func read() -> Bool {
    guard !kernelBuffer.isEmpty else { return false }
    let count = min(kernelBuffer.count, CarReceiver.readSize)
    chunk = reassembles ? (unfinished + kernelBuffer[..<count])[...] : Array(kernelBuffer[..<count])[...]
    unfinished = []
    kernelBuffer.removeFirst(count)
    return true
  }

  /// Returns the next frame of this read, or nil if there is none. If the car does not reassemble frames, the rest of the read is then
  /// discarded.
  mutating func next() -> ReceivedFrame? {
    if reassembles { return nextReassembled() }
    guard let divider = chunk.position(of: CarReceiver.divider) else { return endRead() }
    let type = Array(chunk[..<divider])
    let rest = chunk[(divider + CarReceiver.divider.count)...]
    guard let end = rest.position(of: CarReceiver.end) else { return endRead() }
    chunk = rest[(end + CarReceiver.end.count)...]
    return ReceivedFrame(type: type, body: Array(rest[..<end]))
  }

  /// Discards the rest of this read, and returns its length.
  @discardableResult
  mutating func discardRead() -> Int {
    defer { chunk = [] }
    return chunk.count
  }

  private mutating func endRead() -> ReceivedFrame? {
    discardRead()
    return nil
  }

  private mutating func nextReassembled() -> ReceivedFrame? {
    if chunk.isEmpty { return nil }
    while let end = chunk.position(of: CarReceiver.bareEnd) {
      let frame = chunk[..<end].drop { $0 == 0x0D || $0 == 0x0A }
      chunk = chunk[(end + CarReceiver.bareEnd.count)...]
      guard let divider = frame.position(of: CarReceiver.divider) else { continue }
      return ReceivedFrame(type: Array(frame[..<divider]), body: Array(frame[(divider + CarReceiver.divider.count)...]))
    }
    unfinished = chunk.count > CarReceiver.maxFrameLength ? [] : Array(chunk)
    return endRead()
  }
}

extension ArraySlice<UInt8> {
  /// The position of the first occurrence of `bytes`.
  func position(of bytes: [UInt8]) -> Int? {
    guard let first = bytes.first, count >= bytes.count else { return nil }
    return (startIndex...(endIndex - bytes.count)).first { self[$0] == first && self[$0..<($0 + bytes.count)].elementsEqual(bytes) }
  }
}
