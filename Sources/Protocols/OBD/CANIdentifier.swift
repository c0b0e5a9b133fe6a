// The address of a controller on the bus as a person writes it: 3 or 8 hex digits. What answers it follows from it.

/// A CAN identifier, of 11 or 29 bits.
struct CANIdentifier: Hashable, Sendable {
  let number: UInt32
  let isLong: Bool

  /// Everybody who knows the emission standard.
  static let functional = CANIdentifier(number: 0x7DF, isLong: false)
  /// The same on a bus of 29 bits.
  static let functionalLong = CANIdentifier(number: 0x18DB_33F1, isLong: true)
  static let engine = CANIdentifier(number: 0x7E0, isLong: false)
  static let engineLong = CANIdentifier(number: 0x18DA_10F1, isLong: true)

  init(number: UInt32, isLong: Bool) { (self.number, self.isLong) = (number, isLong) }

  /// Where a message came from, or a number of our own tables.
  init(_ number: UInt32) { self.init(number: number, isLong: number > 0x7FF) }

  /// Reads 3 or 8 hex digits; nil where they are no identifier.
  init?(_ text: some StringProtocol) {
    let digits = Array(text.utf8)
    guard digits.count == 3 || digits.count == 8, digits.allSatisfy(isHexDigit) else { return nil }
    number = digits.reduce(0) { $0 << 4 | UInt32(hexValue($1)) }
    isLong = digits.count == 8
    guard number <= (isLong ? 0x1FFF_FFFF : 0x7FF) else { return nil }
  }

  /// As the adapter and people write it: `7E4`, `18DA10F1`.
  var text: String {
    let digits = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, (isLong ? 8 : 3) - digits.utf8.count)) + digits
  }

  /// Who answers, where that is sure: eight more, or 18DAssTT for 18DATTss.
  var reply: CANIdentifier? {
    if isLong {
      guard number >> 16 == 0x18DA else { return nil }
      return CANIdentifier(number: number & 0xFFFF_0000 | number << 8 & 0xFF00 | number >> 8 & 0xFF, isLong: true)
    }
    guard self != .functional, number + 8 <= 0x7FF else { return nil }
    return CANIdentifier(number: number + 8, isLong: false)
  }
}
