// Numbers as integers with a fixed number of decimals, the form in which devices send them: 734.8 V is 7348 with one decimal. The
// conversion is lossless, or not done.

enum DecimalScale {
  /// The most decimals that are tried.
  static let limit = 9
  private static let powers: [Double] = [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9]

  /// Returns the numbers as integers with the fewest decimals that restore each of them exactly, or nil if there are none.
  static func integers(_ numbers: [Double]) -> (decimals: Int, integers: [Int64])? {
    var decimals = 0
    for number in numbers {
      while integer(number, decimals) == nil {
        decimals += 1
        if decimals > limit { return nil }
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
    // By way of the integer, which has no negative zero.
    let integer = Int64(scaled)
    return Self.number(integer, decimals).bitPattern == number.bitPattern ? integer : nil
  }

  static func number(_ integer: Int64, _ decimals: Int) -> Double { Double(integer) / powers[decimals] }

  /// Returns the decimal fraction that a text is, as integer and decimals, if `text(of:)` restores the text: `3.84`, not `3.840`.
  static func parse(_ text: String) -> (integer: Int64, decimals: Int)? {
    let utf8 = text.utf8
    guard utf8.count <= 18, utf8.allSatisfy({ $0 >= 0x2D && $0 <= 0x39 }) else { return nil }
    let point = utf8.firstIndex(of: UInt8(ascii: "."))
    let decimals = point.map { utf8.distance(from: $0, to: utf8.endIndex) - 1 } ?? 0
    guard decimals <= limit, let integer = Int64(text.filter { $0 != "." }), Self.text(integer, decimals) == text else { return nil }
    return (integer, decimals)
  }

  /// Returns the shortest text of an integer with decimals.
  static func text(_ integer: Int64, _ decimals: Int) -> String {
    var (digits, decimals) = (integer.magnitude, decimals)
    while decimals > 0, digits.isMultiple(of: 10) { (digits, decimals) = (digits / 10, decimals - 1) }
    let sign = integer < 0 ? "-" : ""
    guard decimals > 0 else { return sign + String(digits) }
    let text = String(digits)
    let padded = String(repeating: "0", count: max(0, decimals + 1 - text.count)) + text
    return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
  }

  /// Returns an integer with more decimals, or nil if it does not fit.
  static func rescale(_ integer: Int64, by decimals: Int) -> Int64? {
    let (scaled, overflows) = integer.multipliedReportingOverflow(by: Int64(powers[decimals]))
    return overflows ? nil : scaled
  }
}
