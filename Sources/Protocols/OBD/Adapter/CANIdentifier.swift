// CAN identifiers of requests and responses, and their textual form.

/// A CAN identifier, of 11 or 29 bits.
package struct CANIdentifier: Hashable, Sendable {
  let number: UInt32
  package let isLong: Bool

  /// The functional address of SAE J1979 on 11-bit CAN.
  static let functional = CANIdentifier(number: 0x7DF, isLong: false)
  /// The same on 29-bit CAN.
  static let functionalLong = CANIdentifier(number: 0x18DB_33F1, isLong: true)
  static let engine = CANIdentifier(number: 0x7E0, isLong: false)
  static let engineLong = CANIdentifier(number: 0x18DA_10F1, isLong: true)

  init(number: UInt32, isLong: Bool) { (self.number, self.isLong) = (number, isLong) }

  /// The source of a message, or a constant.
  init(_ number: UInt32) { self.init(number: number, isLong: number > 0x7FF) }

  /// Parses 3 or 8 hex digits; nil if they are not an identifier.
  package init?(_ text: some StringProtocol) {
    let digits = Array(text.utf8)
    guard digits.count == 3 || digits.count == 8, digits.allSatisfy(isHexDigit) else { return nil }
    number = digits.reduce(0) { $0 << 4 | UInt32(hexValue($1)) }
    isLong = digits.count == 8
    guard number <= (isLong ? 0x1FFF_FFFF : 0x7FF) else { return nil }
  }

  /// The usual notation: `7E4`, `18DA10F1`.
  package var text: String {
    let digits = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, (isLong ? 8 : 3) - digits.utf8.count)) + digits
  }

  /// The response identifier, if it is defined: plus 8, or 18DAssTT for 18DATTss.
  package var reply: CANIdentifier? {
    if isLong {
      guard number >> 16 == 0x18DA else { return nil }
      return CANIdentifier(number: number & 0xFFFF_0000 | number << 8 & 0xFF00 | number >> 8 & 0xFF, isLong: true)
    }
    guard self != .functional, number + 8 <= 0x7FF else { return nil }
    return CANIdentifier(number: number + 8, isLong: false)
  }
}
