// Frames on the diagnostic bus, and the segmentation of messages.
// Source: ISO 15765-2. The first byte of a CAN frame: 0L single frame, L bytes follow · 1L LL first frame of a message of LLL bytes,
// 6 follow · 2n consecutive frame, 7 follow, n counts 1…F, 0…. With extended addressing, an address byte precedes all of them, and frames
// carry one byte less. On a K-line a message is one frame: 3 bytes of header, up to 7 of data,
// checksum.

/// One frame on the bus: on CAN 8 bytes if the car pads frames.
struct OBDFrame: Sendable, Equatable {
  var bus: DiagnosticBus
  var id: UInt32
  var data: [UInt8]

  /// Segments a message of up to 4095 bytes.
  static func segments(
    of payload: [UInt8], from id: UInt32, addressByte: UInt8? = nil, padding: UInt8?, on bus: DiagnosticBus = .can11
  ) -> [OBDFrame] {
    if !bus.isCAN { return [OBDFrame(bus: bus, id: id, data: payload)] }
    let prefix = addressByte.map { [$0] } ?? []
    let capacity = 7 - prefix.count
    func frame(_ header: [UInt8], _ body: ArraySlice<UInt8>) -> OBDFrame {
      let used = prefix + header + body
      return OBDFrame(bus: bus, id: id, data: used + (padding.map { Array(repeating: $0, count: max(0, 8 - used.count)) } ?? []))
    }
    if payload.count <= capacity { return [frame([UInt8(payload.count)], payload[...])] }
    var frames = [frame([0x10 | UInt8(payload.count >> 8 & 0x0F), UInt8(payload.count & 0xFF)], payload.prefix(capacity - 1))]
    var rest = payload.dropFirst(capacity - 1)
    while !rest.isEmpty {
      frames.append(frame([0x20 | UInt8(frames.count & 0x0F)], rest.prefix(capacity)))
      rest = rest.dropFirst(capacity)
    }
    return frames
  }

  /// The header bytes; empty for an 11-bit identifier.
  var header: [UInt8] {
    switch bus {
    case .can11: []
    case .can29: (0..<4).reversed().map { UInt8(truncatingIfNeeded: id >> (8 * $0)) }
    case .kwp: [0x80 | UInt8(data.count & 0x3F), 0xF1, UInt8(truncatingIfNeeded: id)]
    case .iso9141: [0x48, 0x6B, UInt8(truncatingIfNeeded: id)]
    }
  }

  /// The checksum of a K-line frame; nil on CAN.
  var checksum: UInt8? { bus.isCAN ? nil : (header + data).reduce(0, &+) }
}
