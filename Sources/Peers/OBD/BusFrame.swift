// CAN frames as they stand on the car's bus, and the segmentation of a longer message into them. It knows no adapter.
// Facts: ISO 15765-2; the first byte of a frame says what it is:
//   0L single, L bytes follow · 1L LL first of a message of LLL bytes, 6 follow · 2n consecutive, n counts 1…F, 0…, 7 follow

/// One frame on the bus: always eight bytes, padded.
struct BusFrame: Sendable, Equatable {
  var id: UInt32
  var data: [UInt8]

  /// The frames that carry a message of up to 4095 bytes.
  static func segments(of payload: [UInt8], from id: UInt32, padding: UInt8) -> [BusFrame] {
    func frame(_ head: [UInt8], _ body: ArraySlice<UInt8>) -> BusFrame {
      let used = head + body
      return BusFrame(id: id, data: used + Array(repeating: padding, count: max(0, 8 - used.count)))
    }
    if payload.count <= 7 { return [frame([UInt8(payload.count)], payload[...])] }
    var frames = [frame([0x10 | UInt8(payload.count >> 8 & 0x0F), UInt8(payload.count & 0xFF)], payload.prefix(6))]
    var rest = payload.dropFirst(6)
    while !rest.isEmpty {
      frames.append(frame([0x20 | UInt8(frames.count & 0x0F)], rest.prefix(7)))
      rest = rest.dropFirst(7)
    }
    return frames
  }
}
