// Formats received and sent bytes for the output of --verbose.

/// Bytes as text with escapes: `ATZ\r`, `\xFC`.
enum EscapedText {
  /// The first `printable` bytes, followed by the number of redacted bytes.
  static func of(_ bytes: [UInt8], printable: Int) -> String {
    let text = of(bytes.prefix(printable))
    let rest = bytes.count - printable
    return rest > 0 ? "\(text)(\(rest) bytes redacted)" : text
  }

  static func of(_ bytes: some Sequence<UInt8>) -> String {
    bytes.reduce(into: "") { text, byte in
      switch byte {
      case 0x0D: text += "\\r"
      case 0x0A: text += "\\n"
      case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
  }
}
