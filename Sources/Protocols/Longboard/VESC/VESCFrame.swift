// The packet format of a VESC: start byte, length, payload, checksum, stop byte. The reader accepts bytes in pieces of any size and
// skips noise; it buffers at most two frames of the maximum length.
// Source: vedderb/bldc comm/packet.c and util/crc.c.
//
//   02 LEN8                payload 1...255 bytes    CRC16 03
//   03 LEN16 (most significant byte first)  255...1024    CRC16 03

/// The checksum of a payload: CRC-16/XMODEM (polynomial 1021, initial value 0). "123456789" gives 31C3.
struct VESCChecksum: Sendable {
  private static let table: [UInt16] = (0..<256).map { index in
    (0..<8).reduce(UInt16(index) << 8) { sum, _ in sum & 0x8000 != 0 ? sum << 1 ^ 0x1021 : sum << 1 }
  }

  static func of(_ bytes: ArraySlice<UInt8>) -> UInt16 {
    table.withUnsafeBufferPointer { table in
      bytes.withUnsafeBufferPointer { bytes in
        var sum: UInt16 = 0
        for byte in bytes { sum = sum << 8 ^ table[Int(UInt8(truncatingIfNeeded: sum >> 8) ^ byte)] }
        return sum
      }
    }
  }
}

enum VESCFrame {
  /// The maximum length of a payload in bytes: firmware 3.40 allows 1024, other versions allow 512.
  static let maxPayloadLength = 1024
  static let maxLength = maxPayloadLength + 6
  static let stop: UInt8 = 0x03

  /// The frame of a payload of 1 to 1024 bytes.
  static func enclosing(_ payload: [UInt8]) -> [UInt8] {
    var frame: [UInt8] = []
    frame.reserveCapacity(payload.count + 6)
    if payload.count <= 255 {
      frame += [0x02, UInt8(truncatingIfNeeded: payload.count)]
    } else {
      frame += [0x03, UInt8(truncatingIfNeeded: payload.count >> 8), UInt8(truncatingIfNeeded: payload.count)]
    }
    let sum = VESCChecksum.of(payload[...])
    frame += payload
    frame += [UInt8(truncatingIfNeeded: sum >> 8), UInt8(truncatingIfNeeded: sum), stop]
    return frame
  }
}

/// Finds frames in received data.
struct VESCReader: Sendable {
  private var buffer: [UInt8] = []
  private var start = 0
  /// The number of bytes after false starts that have been checksummed since the last frame or the last `append`.
  private var checkedBytes = 0
  /// The maximum of `checkedBytes`, beyond which the buffer is skipped. Without it, data with many false starts would cost hundreds of
  /// checksums per byte.
  private static let maxCheckedBytes = 8 * VESCFrame.maxLength

  /// Whether invalid data is being skipped, so that each run is counted once.
  private var isSkipping = false
  /// The number of runs of invalid data.
  private(set) var runsOfNoise = 0
  /// The number of invalid bytes since the last frame.
  private(set) var noise = 0

  init() { buffer.reserveCapacity(2 * VESCFrame.maxLength) }

  /// The number of buffered bytes of an incomplete frame.
  var bufferedCount: Int { buffer.count - start }

  /// Removes as many bytes as fit into the buffer; `next` makes room for more.
  mutating func append(_ bytes: inout ArraySlice<UInt8>) {
    if start > 0 {
      buffer.removeSubrange(..<start)
      start = 0
    }
    checkedBytes = 0
    let room = bytes.prefix(2 * VESCFrame.maxLength - buffer.count)
    buffer.append(contentsOf: room)
    bytes = bytes.dropFirst(room.count)
  }

  /// Returns the payload of the next complete frame, or nil. The slice is valid until the next call of `append`.
  mutating func next() -> ArraySlice<UInt8>? {
    while start < buffer.count {
      if checkedBytes > Self.maxCheckedBytes {
        noise += bufferedCount
        start = buffer.count
        return nil
      }
      switch examineStart() {
      case .frame(let payload, let end):
        start = end
        checkedBytes = 0
        isSkipping = false
        noise = 0
        return buffer[payload]
      case .incomplete: return nil
      case .none: skip()
      }
    }
    return nil
  }

  /// Drops an incomplete frame, because no data has arrived for a while, and returns a complete frame that follows it in the buffer.
  mutating func nextAfterSilence() -> ArraySlice<UInt8>? {
    while start < buffer.count {
      skip()
      if let payload = next() { return payload }
    }
    return nil
  }

  /// Resets the reader for a new link.
  mutating func reset() {
    buffer.removeAll(keepingCapacity: true)
    start = 0
    isSkipping = false
    noise = 0
  }

  private mutating func skip() {
    start += 1
    noise += 1
    if !isSkipping { runsOfNoise += 1 }
    isSkipping = true
  }

  /// What the buffer starts with; `none`: not a frame.
  private enum BufferStart {
    case frame(payload: Range<Int>, end: Int)
    case incomplete
    case none
  }

  /// Checks whether the buffer starts with a frame.
  private mutating func examineStart() -> BufferStart {
    let head: Int
    switch buffer[start] {
    case 0x02: head = 2
    case 0x03: head = 3
    default: return .none
    }
    guard bufferedCount >= head else { return .incomplete }
    let length = head == 2 ? Int(buffer[start + 1]) : Int(buffer[start + 1]) << 8 | Int(buffer[start + 2])
    guard (head == 2 ? 1...255 : 255...VESCFrame.maxPayloadLength).contains(length) else { return .none }
    let payload = start + head..<start + head + length
    guard buffer.count >= payload.upperBound + 3 else { return .incomplete }
    let sum = UInt16(buffer[payload.upperBound]) << 8 | UInt16(buffer[payload.upperBound + 1])
    guard buffer[payload.upperBound + 2] == VESCFrame.stop else { return .none }
    guard VESCChecksum.of(buffer[payload]) == sum else {
      checkedBytes += length
      return .none
    }
    return .frame(payload: payload, end: payload.upperBound + 3)
  }
}
