// Bytes of a page by their places, and a page under construction from its beginning. Values that do not fit are cut to what does.

/// A page of so many bytes, all 0 until something is put there. What lies outside is not written.
struct Layout: Sendable {
  private(set) var bytes: [UInt8]

  init(_ count: Int) { bytes = Array(repeating: 0, count: count) }

  mutating func put(_ more: [UInt8], at place: Int) {
    for (offset, byte) in more.enumerated() where bytes.indices.contains(place + offset) { bytes[place + offset] = byte }
  }

  /// A number of so many bytes, the high one first; a negative one as its two's complement.
  mutating func put(_ number: Double, bytes count: Int, at place: Int) {
    let most = Double(1 << (8 * count)) - 1
    let value = Int(max(-most / 2, min(most, number.rounded())))
    put((0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }, at: place)
  }

  /// A signed byte.
  mutating func put(signed number: Double, at place: Int) { put(max(-128, min(127, number)), bytes: 1, at: place) }

  /// A signed number of two bytes, the low one first.
  mutating func put(little number: Double, at place: Int) {
    let value = Int16(max(-32_768, min(32_767, number.rounded())))
    put([UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)], at: place)
  }
}

/// Bytes under construction, most significant first.
struct BigEndian {
  private(set) var bytes: [UInt8]

  init(_ head: [UInt8]) {
    bytes = head
    bytes.reserveCapacity(64)
  }

  mutating func add<Number: FixedWidthInteger>(_ numbers: [Number]) {
    for number in numbers { add(number) }
  }

  mutating func add<Number: FixedWidthInteger>(_ number: Number) {
    for shift in stride(from: Number.bitWidth - 8, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
  }
}
