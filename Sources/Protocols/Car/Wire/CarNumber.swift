// Numbers on the wire. They are written with a decimal point and six decimals, and read as plain decimals. A negative zero is never
// written, because the car interprets it as an angle of half a turn, and drives one wheel in full reverse.
// Source: C's "%f" in the app, Python 2's str() and float() in the car.

/// Numbers on the wire.
enum CarNumber {
  /// The resolution: a millionth.
  static let scale = 1e6
  /// The maximum length of a number in characters.
  private static let maxLength = 32

  /// A number in millionths, as printed; nil if it is not finite or too large.
  static func millionths(_ number: Double) -> Int? { number.isFinite ? Int(exactly: (number * scale).rounded()) : nil }

  /// Millionths as text with six decimals: `0.400000`, `-2.209182`.
  static func write(_ millionths: Int, to bytes: inout [UInt8]) {
    if millionths < 0 { bytes.append(UInt8(ascii: "-")) }
    let magnitude = millionths.magnitude
    bytes += String(magnitude / 1_000_000).utf8
    bytes.append(UInt8(ascii: "."))
    var rest = magnitude % 1_000_000
    var place: UInt = 100_000
    while place > 0 {
      bytes.append(UInt8(ascii: "0") + UInt8(rest / place))
      rest %= place
      place /= 10
    }
  }

  /// Parses a plain decimal number, with optional spaces around it: `0.0166666666667`, `1e-05`. No comma, no `nan`, no `inf`.
  static func read(_ text: some StringProtocol) -> Double? {
    guard text.utf8.count <= maxLength else { return nil }
    let digits = text.trimmed
    let isPlain = digits.utf8.allSatisfy { (0x30...0x39).contains($0) || [0x2B, 0x2D, 0x2E, 0x45, 0x65].contains($0) }
    guard isPlain, let number = Double(digits), number.isFinite else { return nil }
    return number
  }
}

extension StringProtocol {
  /// The text without leading and trailing blanks.
  var trimmed: String {
    let rest = drop { $0 == " " || $0 == "\t" }
    guard let last = rest.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
    return String(rest[...last])
  }
}
