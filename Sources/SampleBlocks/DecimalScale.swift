// Represents numbers as integers with a fixed number of decimals, as devices send them: 734.8 V is 7348 with one decimal. Only lossless
// conversions are made.

enum DecimalScale {
  /// The maximum number of decimals.
  static let maxDecimals = 9
  private static let powers: [Double] = [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]

  /// Returns the numbers as integers with the fewest decimals that restore each of them exactly, or nil if no number of decimals does.
  static func integers(_ numbers: [Double]) -> (decimals: Int, integers: [Int64])? {
    var decimals = 0
    for number in numbers {
      while integer(number, decimals) == nil {
        decimals += 1
        if decimals > maxDecimals { return nil }
      }
    }
    var integers: [Int64] = []
    integers.reserveCapacity(numbers.count)
    for number in numbers {
      guard let integer = integer(number, decimals) else { return nil }
      integers.append(integer)
    }
    return (decimals, integers)
  }

  private static func integer(_ number: Double, _ decimals: Int) -> Int64? {
    let scaled = (number * powers[decimals]).rounded()
    guard abs(scaled) <= 0x1p53 else { return nil }
    // Compare after the round trip through the integer, which cannot represent negative zero.
    let integer = Int64(scaled)
    return Self.number(integer, decimals).bitPattern == number.bitPattern ? integer : nil
  }

  static func number(_ integer: Int64, _ decimals: Int) -> Double { Double(integer) / powers[decimals] }

  /// Parses a decimal fraction; nil unless `text(_:_:)` restores the same text: `3.84`, but not `3.840`.
  static func parse(_ text: String) -> (integer: Int64, decimals: Int)? {
    guard text.utf8.count <= 18 else { return nil }
    var integer: Int64 = 0
    var (digits, last) = (0, UInt8(0))
    var point: Int?
    for (index, byte) in text.utf8.enumerated() {
      switch byte {
      case UInt8(ascii: "-") where index == 0: continue
      case UInt8(ascii: ".") where point == nil && digits > 0: point = digits
      // No leading zeros.
      case UInt8(ascii: "0")...UInt8(ascii: "9") where point != nil || digits == 0 || integer > 0:
        integer = integer * 10 + Int64(byte - UInt8(ascii: "0"))
        (digits, last) = (digits + 1, byte)
      default: return nil
      }
    }
    let decimals = point.map { digits - $0 } ?? 0
    guard digits > 0, decimals <= maxDecimals, point == nil || decimals > 0 && last != UInt8(ascii: "0") else { return nil }
    guard text.utf8.first == UInt8(ascii: "-") else { return (integer, decimals) }
    return integer > 0 ? (-integer, decimals) : nil
  }

  /// Returns the shortest text of an integer with this number of decimals.
  static func text(_ integer: Int64, _ decimals: Int) -> String {
    var (digits, decimals) = (integer.magnitude, decimals)
    while decimals > 0, digits.isMultiple(of: 10) { (digits, decimals) = (digits / 10, decimals - 1) }
    let sign = integer < 0 ? "-" : ""
    guard decimals > 0 else { return sign + String(digits) }
    let text = String(digits)
    let padded = String(repeating: "0", count: max(0, decimals + 1 - text.count)) + text
    return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
  }

  /// Returns the integer with `decimals` more decimals, or nil if it does not fit.
  static func rescale(_ integer: Int64, by decimals: Int) -> Int64? {
    let (scaled, overflows) = integer.multipliedReportingOverflow(by: Int64(powers[decimals]))
    return overflows ? nil : scaled
  }
}
