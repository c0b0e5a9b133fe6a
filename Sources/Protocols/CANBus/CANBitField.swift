// Where a number is in the eight bytes of a frame, and how its bits become a number. The notation is that of DBC files.
// Source: Vector, DBC File Format Documentation 1.0.5, section 8.
//
//   16|12@1+    12 bits from bit 16 on. Bit 16 is the least significant bit of byte 2.
//               @1: Intel (little endian), the first number is the least significant bit · + unsigned
//   7|16@0-     @0: Motorola (big endian), the first number is the most significant bit; from bit 0 of a byte to bit 7 of the next one
//               - two's complement

package struct CANBitField: Hashable, Sendable {
  /// The number of bits, 1 to 64.
  package let length: Int
  package let isLittleEndian: Bool
  package let isSigned: Bool
  /// The number of bytes that a frame must have to contain the field, 1 to 8.
  package let minCount: Int
  /// The number of bits above the field, if the bytes are one number in the order of the field.
  private let leading: UInt64

  /// A field whose first number is `start`; nil if it is not within eight bytes.
  package init?(start: Int, length: Int, isLittleEndian: Bool, isSigned: Bool) {
    guard (0..<64).contains(start), (1...64).contains(length) else { return nil }
    let end = isLittleEndian ? start + length : start / 8 * 8 + 7 - start % 8 + length
    guard end <= 64 else { return nil }
    (self.length, self.isLittleEndian, self.isSigned) = (length, isLittleEndian, isSigned)
    minCount = (end + 7) / 8
    leading = UInt64(isLittleEndian ? 64 - end : end - length)
  }

  /// Parses the notation; throws for anything else, with the remedy.
  package init(_ text: String) throws(ValueError) {
    let isSigned = text.hasSuffix("-")
    let parts = text.dropLast().split(separator: "@", omittingEmptySubsequences: false)
    let numbers = parts.first?.split(separator: "|", omittingEmptySubsequences: false).map { Self.number($0) } ?? []
    guard isSigned || text.hasSuffix("+"), parts.count == 2, parts[1] == "0" || parts[1] == "1", numbers.count == 2,
      let start = numbers[0], let length = numbers[1]
    else {
      throw ValueError("not a bit field; write START|LENGTH@ORDER and + or - as in a DBC file, such as 16|12@1+")
    }
    guard let field = Self(start: start, length: length, isLittleEndian: parts[1] == "1", isSigned: isSigned) else {
      throw ValueError("the bits are not within the 8 bytes of a frame; correct start, length or order (@1 Intel, @0 Motorola)")
    }
    self = field
  }

  private static func number(_ digits: Substring) -> Int? {
    (1...3).contains(digits.utf8.count) && digits.utf8.allSatisfy(isDigit) ? Int(digits) : nil
  }

  /// The bits of a frame, as an unsigned number. `word` holds the eight bytes, the first one in the most significant position.
  @inline(__always) package func raw(in word: UInt64) -> UInt64 {
    let ordered = isLittleEndian ? word.byteSwapped : word
    return (ordered &<< leading) &>> UInt64(64 &- length)
  }

  /// These bits as a number, in two's complement if the field is signed.
  @inline(__always) package func number(_ raw: UInt64) -> Double {
    isSigned ? Double(signed(raw)) : Double(raw)
  }

  /// These bits in two's complement.
  @inline(__always) package func signed(_ raw: UInt64) -> Int64 {
    let unused = Int64(64 &- length)
    return (Int64(bitPattern: raw) &<< unused) &>> unused
  }

  /// The largest unsigned number that the bits can hold.
  package var maxRaw: UInt64 { .max >> UInt64(64 - length) }

  /// The smallest and the largest number that the bits can hold.
  package var range: ClosedRange<Double> {
    func power(_ bits: Int) -> Double { Double(sign: .plus, exponent: bits, significand: 1) }
    return isSigned ? -power(length - 1)...(power(length - 1) - 1) : 0...(power(length) - 1)
  }
}

/// A condition on a multiplexer: the message contains a signal only if the number in `field` is in one of `ranges`.
///
///     0|8@1+: 3, 5-7
package struct CANCondition: Hashable, Sendable {
  package let field: CANBitField
  package let ranges: [ClosedRange<UInt64>]

  package init(_ field: CANBitField, _ ranges: [ClosedRange<UInt64>]) { (self.field, self.ranges) = (field, ranges) }

  /// Parses the notation; throws for anything else, with the remedy.
  package init(_ text: String) throws(ValueError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let form = "write the bits of the multiplexer and its values, as in \"0|8@1+: 3\" or \"0|8@1+: 3, 5-7\""
    guard parts.count == 2 else { throw ValueError("\"\(visible(text, limit: 40))\" is not a condition; \(form)") }
    field = try CANBitField(String(parts[0].filter { $0 != " " }))
    var ranges: [ClosedRange<UInt64>] = []
    for item in parts[1].split(separator: ",", omittingEmptySubsequences: false) {
      let limits = item.filter { $0 != " " }.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
      guard (1...2).contains(limits.count), let low = limits[0], let high = limits[limits.count - 1], low <= high else {
        throw ValueError("\"\(visible(String(item), limit: 40))\" is not a value of a multiplexer; \(form)")
      }
      guard high <= field.maxRaw else {
        throw ValueError("\(field.text) has \(field.length) bits and is never \(high); use 0 to \(field.maxRaw), or correct the bits")
      }
      ranges.append(low...high)
    }
    self.ranges = ranges
  }

  /// Whether a frame with these bytes meets it.
  @inline(__always) package func isMet(by word: UInt64, count: Int) -> Bool {
    guard count >= field.minCount else { return false }
    let raw = field.raw(in: word)
    for range in ranges where range.contains(raw) { return true }
    return false
  }
}

extension CANBitField {
  /// The field in the notation of DBC files.
  package var text: String {
    let start = isLittleEndian ? 64 - Int(leading) - length : Int(leading) / 8 * 8 + 7 - Int(leading) % 8
    return "\(start)|\(length)@\(isLittleEndian ? 1 : 0)\(isSigned ? "-" : "+")"
  }
}

extension CANCondition {
  /// The condition as in the configuration.
  package var text: String {
    let values = ranges.map { $0.lowerBound == $0.upperBound ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
    return "\(field.text): \(values.joined(separator: ", "))"
  }
}
