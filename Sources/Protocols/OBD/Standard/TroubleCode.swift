// Diagnostic trouble codes: two bytes on the wire, five characters as text (SAE J2012, ISO 15031-6), and the responses of services 03, 07
// and 0A. A response of the wrong length is rejected.

/// A diagnostic trouble code.
struct TroubleCode: Sendable, Hashable, Comparable {
  /// Bits 15-14: the system (P, C, B, U), 13-12: the first digit, then three hex digits.
  let number: UInt16

  init(number: UInt16) { self.number = number }
  init(_ high: UInt8, _ low: UInt8) { number = UInt16(high) << 8 | UInt16(low) }

  /// Parses text such as `P0133`, in upper or lower case.
  init?(_ text: String) {
    let characters = Array(text.utf8)
    guard characters.count == 5, let system = Self.letters.firstIndex(of: characters[0] & 0xDF) else { return nil }
    let digits = characters.dropFirst().map(hexValue)
    guard digits[0] < 4, digits.allSatisfy({ $0 < 16 }) else { return nil }
    number = digits.dropFirst().reduce(UInt16(system) << 2 | UInt16(digits[0])) { $0 << 4 | UInt16($1) }
  }

  private static let letters = Array("PCBU".utf8)

  /// `P0133`
  var text: String {
    let head = [Self.letters[Int(number >> 14)], UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number >> 12 & 3)]
    return String(decoding: head, as: UTF8.self) + spacedHex([UInt8(truncatingIfNeeded: number >> 8 & 0x0F)]).suffix(1)
      + spacedHex([UInt8(truncatingIfNeeded: number)])
  }

  /// Whether this is padding instead of a code.
  var isPadding: Bool { number == 0 }

  /// Whether the code is defined by SAE J2012 or ISO 15031-6, not by the manufacturer.
  var isStandard: Bool {
    switch number >> 12 {
    // P0, P2, P3400 to P3FFF, C0, B0 and U0 are standard; the others are manufacturer-specific or reserved.
    case 0x0, 0x2, 0x4, 0x8, 0xC: true
    case 0x3: number >= 0x3400
    default: false
    }
  }

  static func < (lhs: TroubleCode, rhs: TroubleCode) -> Bool { lhs.number < rhs.number }

  /// The result of parsing a response of services 03, 07 and 0A.
  enum Answer: Equatable {
    case codes([TroubleCode])
    case malformed(String)
  }

  /// Parses one message. On CAN the number of codes follows the service; older protocols have three codes per line,
  /// padded with zeros. An odd length on CAN is a whole frame with padding, as some adapters print it when headers are off.
  static func read(_ message: ArraySlice<UInt8>, onCAN: Bool = false) -> Answer {
    let bytes = Array(message)
    guard let service = bytes.first, service == 0x43 || service == 0x47 || service == 0x4A else {
      return .malformed("not a trouble code response")
    }
    let pairs: ArraySlice<UInt8>
    if bytes.count % 2 == 0 {
      guard bytes.count == 2 + 2 * Int(bytes[1]) else { return .malformed("the number of codes does not match the response length") }
      pairs = bytes[2...]
    } else if onCAN {
      let end = bytes.count == 7 ? 2 + 2 * Int(bytes[1]) : .max
      guard end < bytes.count, bytes[end...].allSatisfy({ $0 == 0 }) else {
        return .malformed("the number of codes does not match the response length")
      }
      pairs = bytes[2..<end]
    } else {
      guard bytes.count == 7 else { return .malformed("truncated line of trouble codes") }
      pairs = bytes[1...]
    }
    return .codes(
      stride(from: pairs.startIndex, to: pairs.endIndex - 1, by: 2).map { TroubleCode(pairs[$0], pairs[$0 + 1]) }.filter { !$0.isPadding })
  }
}
