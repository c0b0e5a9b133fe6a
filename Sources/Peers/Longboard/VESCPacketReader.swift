// The packet format of VESC, implemented independently of Protocols, so that tests detect errors in either implementation.
// Source: comm/packet.c, util/crc.c and util/buffer.c of vedderb/bldc.

import Protocols

/// Finds packets in the bytes that the host sends.
struct VESCPacketReader: Sendable {
  private var bytes: [UInt8] = []
  private var lastByteAt: Instant = .min
  private static let maxLength = 512
  /// The timeout of an incomplete packet.
  private static let timeout: Nanoseconds = 500 * .millisecond

  mutating func clear() { bytes = [] }

  /// Handles received bytes, and returns the payloads of complete packets.
  mutating func receive(_ more: [UInt8], at now: Instant) -> [[UInt8]] {
    if lastByteAt != .min, now - lastByteAt > Self.timeout { bytes = [] }
    lastByteAt = now
    bytes += more
    var payloads: [[UInt8]] = []
    while !bytes.isEmpty {
      guard bytes[0] == 2 || bytes[0] == 3 else {
        bytes.removeFirst()
        continue
      }
      // The value of the first byte is also the length of the header.
      let headerLength = Int(bytes[0])
      guard bytes.count >= headerLength else { break }
      let length = headerLength == 2 ? Int(bytes[1]) : Int(bytes[1]) * 256 + Int(bytes[2])
      guard length > 0, length <= Self.maxLength else {
        bytes.removeFirst()
        continue
      }
      guard bytes.count >= headerLength + length + 3 else { break }
      let payload = Array(bytes[headerLength..<headerLength + length])
      let crc = Int(bytes[headerLength + length]) * 256 + Int(bytes[headerLength + length + 1])
      if bytes[headerLength + length + 2] == 3, crc == Int(Self.crc(payload)) {
        payloads.append(payload)
        bytes.removeFirst(headerLength + length + 3)
      } else {
        bytes.removeFirst()
      }
    }
    return payloads
  }

  /// CRC-16/XMODEM, bit by bit.
  static func crc(_ payload: [UInt8]) -> UInt16 {
    var crc: UInt32 = 0
    for byte in payload {
      crc ^= UInt32(byte) << 8
      for _ in 0..<8 {
        crc <<= 1
        if crc & 0x1_0000 != 0 { crc ^= 0x1_1021 }
      }
    }
    return UInt16(crc)
  }

  /// Frames a payload.
  static func packet(_ payload: [UInt8]) -> [UInt8] {
    let crc = crc(payload)
    let header: [UInt8] = payload.count < 256 ? [2, UInt8(payload.count)] : [3, UInt8(payload.count / 256), UInt8(payload.count % 256)]
    return header + payload + [UInt8(crc / 256), UInt8(crc % 256), 3]
  }

  /// Encodes a 32-bit float.
  static func bytes(_ number: Float) -> [UInt8] {
    let bits = number.bitPattern
    return [UInt8(bits >> 24), UInt8(bits >> 16 & 0xFF), UInt8(bits >> 8 & 0xFF), UInt8(bits & 0xFF)]
  }

  static func floats(_ bytes: ArraySlice<UInt8>) -> [Float] {
    let bytes = Array(bytes)
    return stride(from: 0, to: bytes.count / 4 * 4, by: 4).map { index in
      Float(bitPattern: bytes[index..<index + 4].reduce(0 as UInt32) { $0 << 8 | UInt32($1) })
    }
  }
}
