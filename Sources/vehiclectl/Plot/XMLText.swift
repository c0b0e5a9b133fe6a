// Escapes text for XML. No I/O.
// Source: XML 1.0 (Fifth Edition), sections 2.2 and 2.4.

enum XMLText {
  /// The text with `&`, `<`, `>` and `"` as entity references. Control characters and line breaks become spaces.
  static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "\u{0}"..."\u{1f}", "\u{fffe}", "\u{ffff}": escaped += " "
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
