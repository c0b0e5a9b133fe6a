// CAN identifiers of requests and responses, and their textual form.

/// A CAN identifier, of 11 or 29 bits.
package struct CANIdentifier: Hashable, Sendable {
  package let number: UInt32
  /// Whether it has 29 bits instead of 11.
  package let is29Bit: Bool

  /// The functional address of SAE J1979 on 11-bit CAN.
  static let functional = CANIdentifier(number: 0x7DF, is29Bit: false)
  /// The functional address on 29-bit CAN.
  static let functional29Bit = CANIdentifier(number: 0x18DB_33F1, is29Bit: true)
  /// The engine ECU.
  static let engine = CANIdentifier(number: 0x7E0, is29Bit: false)
  static let engine29Bit = CANIdentifier(number: 0x18DA_10F1, is29Bit: true)

  package init(number: UInt32, is29Bit: Bool) { (self.number, self.is29Bit) = (number, is29Bit) }

  /// Infers the length: 29 bits if the number does not fit into 11. Use it only for the source of a received message or for a constant.
  init(_ number: UInt32) { self.init(number: number, is29Bit: number > 0x7FF) }

  /// Parses 3 or 8 hex digits; nil if the text is not a valid identifier.
  package init?(_ text: some StringProtocol) {
    let digits = Array(text.utf8)
    guard digits.count == 3 || digits.count == 8, digits.allSatisfy(isHexDigit) else { return nil }
    number = digits.reduce(0) { $0 << 4 | UInt32(hexValue($1)) }
    is29Bit = digits.count == 8
    guard number <= (is29Bit ? 0x1FFF_FFFF : 0x7FF) else { return nil }
  }

  /// The identifier in hex digits: `7E4`, `18DA10F1`.
  package var text: String {
    let digits = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, (is29Bit ? 8 : 3) - digits.utf8.count)) + digits
  }

  /// The response identifier that ISO 15765-4 defines for this request identifier (plus 8, or 18DAssTT for 18DATTss), or nil if it defines
  /// none.
  package var reply: CANIdentifier? {
    if is29Bit {
      guard number >> 16 == 0x18DA else { return nil }
      return CANIdentifier(number: number & 0xFFFF_0000 | number << 8 & 0xFF00 | number >> 8 & 0xFF, is29Bit: true)
    }
    guard self != .functional, number + 8 <= 0x7FF else { return nil }
    return CANIdentifier(number: number + 8, is29Bit: false)
  }

  /// The identifier of BMW's testers.
  private static let bmwTester = CANIdentifier(number: 0x6F1, is29Bit: false)

  /// The response identifier for this request identifier if each frame has such address bytes. An ECU of BMW responds at 600 plus its
  /// address.
  func reply(_ addressBytes: ISOTPAddressing) -> CANIdentifier? {
    guard self == Self.bmwTester, let byte = addressBytes.sentByte else { return reply }
    return CANIdentifier(number: 0x600 + UInt32(byte), is29Bit: false)
  }
}
