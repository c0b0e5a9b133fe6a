// Untrusted text in messages: escaped, so that it can neither begin a line nor control a terminal, and truncated.

/// The text with control characters escaped (`\n`, `\u{1b}`), cut after `limit` characters.
public func printable(_ text: some StringProtocol, limit: Int = 200) -> String {
  var result = ""
  var count = 0
  for scalar in text.unicodeScalars {
    guard count < limit else { return result + "…" }
    count += 1
    switch scalar.properties.generalCategory {
    case .control where scalar == "\n": result += "\\n"
    case .control where scalar == "\r": result += "\\r"
    case .control where scalar == "\t": result += "\\t"
    case .control, .format, .lineSeparator, .paragraphSeparator: result += "\\u{\(String(scalar.value, radix: 16))}"
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}

/// The text in quotes, escaped and truncated.
public func quoted(_ text: some StringProtocol) -> String { "\"\(printable(text, limit: 60))\"" }

/// The bytes as text in quotes, escaped and truncated.
public func quoted(_ bytes: ArraySlice<UInt8>) -> String { quoted(String(decoding: bytes, as: UTF8.self)) }
