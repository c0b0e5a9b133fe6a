// Number parsing like float() and int() of Python 2: surrounding whitespace and a sign are allowed; hexadecimal numbers and a decimal comma
// are not.

/// Parsers of Python numbers.
enum PythonNumber {
  /// float(text), or nil where it raises. `nan`, `inf` and `infinity` are valid.
  static func float(_ text: some Sequence<UInt8>) -> Double? {
    let bytes = trimmed(text)
    let digits = bytes.first == 0x2B || bytes.first == 0x2D ? bytes.dropFirst() : bytes[...]
    let word = String(decoding: digits, as: UTF8.self).lowercased()
    let isNegative = bytes.first == 0x2D
    switch word {
    case "nan": return .nan
    case "inf", "infinity": return isNegative ? -.infinity : .infinity
    default: break
    }
    // Swift also accepts hexadecimal numbers and a second sign.
    guard let first = word.utf8.first, first == 0x2E || (0x30...0x39).contains(first),
      word.utf8.allSatisfy({ (0x30...0x39).contains($0) || [0x2B, 0x2D, 0x2E, 0x65].contains($0) }), let value = Double(word)
    else { return nil }
    return isNegative ? -value : value
  }

  /// int(text), or nil where it raises or the number exceeds 64 bits.
  static func int(_ text: some Sequence<UInt8>) -> Int? {
    let bytes = trimmed(text)
    let digits = bytes.first == 0x2B || bytes.first == 0x2D ? bytes.dropFirst() : bytes[...]
    guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(String(decoding: bytes, as: UTF8.self))
  }

  private static func trimmed(_ text: some Sequence<UInt8>) -> [UInt8] {
    let isBlank = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
    let rest = Array(text.drop(while: isBlank))
    return Array(rest[..<(rest.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? 0)])
  }
}
