// The OBD protocols, and how requests are addressed on each.
// Source: SAE J1979 and the ELM327 data sheet's list of protocols (AT SP, AT DPN).
//
//   11-bit CAN   functional 7DF · 7E0… respond as 7E8…       29-bit CAN   18DB33F1 · 18DA10F1 responds as 18DAF110
//   pre-CAN      the adapter addresses all ECUs itself; one PID per request; any ECU that supports it responds

/// A protocol by its ELM327 number.
struct OBDProtocol: Hashable, Sendable {
  let number: UInt8

  /// The adapter tries all protocols, because the vehicle's protocol is not known yet.
  static let automatic = OBDProtocol(number: 0)
  /// 11-bit CAN at 500 kbit/s, the protocol of nearly every car since 2008.
  static let can = OBDProtocol(number: 6)

  /// The error message for a header on a pre-CAN protocol.
  static let noCAN = "a header is a CAN identifier, and the vehicle has no CAN bus"

  private static let names = [
    "SAE J1850 PWM", "SAE J1850 VPW", "ISO 9141-2", "ISO 14230-4 (KWP, 5 baud)", "ISO 14230-4 (KWP, fast)",
    "ISO 15765-4 (CAN 11 bit, 500 kbit/s)",
    "ISO 15765-4 (CAN 29 bit, 500 kbit/s)", "ISO 15765-4 (CAN 11 bit, 250 kbit/s)", "ISO 15765-4 (CAN 29 bit, 250 kbit/s)",
  ]

  init(number: UInt8) { self.number = number }

  /// Parses a protocol as AT DPN reports it (`6`, or `A6` if it was detected) or as it was stored; nil for any other text.
  init?(digits: some Sequence<UInt8>) {
    var digits = Array(digits)
    if digits.count == 2, digits[0] == UInt8(ascii: "A") { digits.removeFirst() }
    guard digits.count == 1, isDigit(digits[0]), digits[0] != UInt8(ascii: "0") else { return nil }
    number = hexValue(digits[0])
  }

  /// The protocol that the source of a response implies; automatic if it implies none. For adapters that do not report the protocol.
  init(impliedBy source: UInt32?) {
    number = source.map { $0 > 0x7FF ? 7 : $0 > 0xFF ? 6 : 0 } ?? 0
  }

  /// The number, in the form that the adapter's commands take.
  var digit: String { String(number) }
  /// The name, nil while the protocol is not known. `bitRate` in bit/s replaces that of the CAN protocol, for interfaces that have their own.
  func name(at bitRate: Int? = nil) -> String? {
    guard number > 0 else { return nil }
    guard isCAN, let bitRate else { return Self.names[Int(number) - 1] }
    return "ISO 15765-4 (CAN \(is29Bit ? 29 : 11) bit, \(bitRate / 1000) kbit/s)"
  }
  var isCAN: Bool { (6...9).contains(number) }
  /// Whether its CAN identifiers have 29 bits instead of 11.
  var is29Bit: Bool { number == 7 || number == 9 }

  /// The functional address, to which all SAE J1979 ECUs respond.
  var allECUs: Target {
    isCAN ? Target(is29Bit ? .functional29Bit : .functional) : .unaddressed
  }

  /// This protocol with identifiers as long as those of the target, at the same bit rate. A target with an identifier implies CAN.
  func adapted(to target: Target) -> OBDProtocol {
    guard let request = target.request else { return self }
    guard isCAN else { return request.is29Bit ? OBDProtocol(number: 7) : .can }
    return request.is29Bit == is29Bit ? self : OBDProtocol(number: is29Bit ? number - 1 : number + 1)
  }
}
