// Two builders for data records: one writes fields at byte positions, the other writes them one after the other.

/// A record of fixed length, initially filled with zeros. Values are clamped to the range of their field. Bytes beyond the end are ignored.
struct FixedRecordBuilder: Sendable {
  private(set) var bytes: [UInt8]

  init(_ count: Int) { bytes = Array(repeating: 0, count: count) }

  mutating func put(_ more: [UInt8], at offset: Int) {
    for (index, byte) in more.enumerated() where bytes.indices.contains(offset + index) { bytes[offset + index] = byte }
  }

  /// Puts a big-endian number of `count` bytes; a negative one in two's complement.
  mutating func put(_ number: Double, bytes count: Int, at offset: Int) {
    let maximum = Double(1 << (8 * count)) - 1
    let value = Int(max(-maximum / 2, min(maximum, number.rounded())))
    put((0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }, at: offset)
  }

  /// Puts a signed byte.
  mutating func put(signed number: Double, at offset: Int) { put(max(-128, min(127, number)), bytes: 1, at: offset) }

  /// Puts a signed little-endian number of two bytes.
  mutating func put(little number: Double, at offset: Int) {
    let value = Int16(max(-32_768, min(32_767, number.rounded())))
    put([UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)], at: offset)
  }
}

/// Writes big-endian numbers one after the other.
struct BigEndianWriter {
  private(set) var bytes: [UInt8]

  init(_ header: [UInt8]) {
    bytes = header
    bytes.reserveCapacity(64)
  }

  mutating func add<Number: FixedWidthInteger>(_ numbers: [Number]) {
    for number in numbers { add(number) }
  }

  mutating func add<Number: FixedWidthInteger>(_ number: Number) {
    for shift in stride(from: Number.bitWidth - 8, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
  }
}
