// The selected bus protocol of an ELM327, and conversion of hexadecimal digits.
// Source: the protocol list of the ELM327 family.

/// A selected protocol: `6`, or `A6` (also `6A`) with automatic detection.
struct SimulatedProtocol: Sendable, Equatable {
  var number: UInt8 = 0
  var isAutomatic = true
  /// Whether automatic detection has succeeded.
  var isDetected = false
  /// Whether a K-line is initialized.
  var isOpen = false

  init() {}

  init?(_ text: Substring) {
    let digits = text.count == 2 ? (text.first == "A" ? text.dropFirst() : text.last == "A" ? text.dropLast() : "") : text
    guard digits.count == 1, let number = UInt8(digits, radix: 16), number <= 0xC else { return nil }
    self.number = number
    isAutomatic = number == 0 || text.count == 2
  }

  /// The reply to ATDPN.
  var digits: String { (isAutomatic ? "A" : "") + String(number, radix: 16, uppercase: true) }

  /// The reply to ATDP.
  var name: String {
    let names = [
      "AUTO", "SAE J1850 PWM", "SAE J1850 VPW", "ISO 9141-2", "ISO 14230-4 (KWP 5BAUD)", "ISO 14230-4 (KWP FAST)",
      "ISO 15765-4 (CAN 11/500)",
      "ISO 15765-4 (CAN 29/500)", "ISO 15765-4 (CAN 11/250)", "ISO 15765-4 (CAN 29/250)", "SAE J1939 (CAN 29/250)", "USER1 (CAN 11/125)",
      "USER2 (CAN 11/50)",
    ]
    let name = names.indices.contains(Int(number)) ? names[Int(number)] : "AUTO"
    return isAutomatic && number != 0 ? "AUTO, " + name : name
  }

  /// The reply to a request when the car's bus uses another protocol.
  var failure: String {
    switch number {
    case 1, 2: "NO DATA"
    case 3...5: "BUS INIT: ...ERROR"
    default: "CAN ERROR"
    }
  }
}

/// Hexadecimal text.
enum HexDigits {
  private static let capitals = Array("0123456789ABCDEF".utf8)

  static func digit(_ value: UInt8) -> UInt8 { capitals[Int(value & 0x0F)] }

  static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x41...0x46: digit - 0x37
    default: nil
    }
  }

  /// Decodes pairs of digits. Returns nil if the text contains anything else.
  static func bytes(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in text {
      guard let value = value(character) else { return nil }
      if let first = high { bytes.append(first << 4 | value) }
      high = high == nil ? value : nil
    }
    return high == nil ? bytes : nil
  }
}
