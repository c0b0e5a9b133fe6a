// Foreign text in sentences of ours, for the configuration and the log: escaped, so that it can neither start a line
// nor drive a terminal; cut, so that it cannot drown the sentence. And the known name that a wrong one comes nearest to.

/// The text with control characters escaped (`\n`, `\u{1b}`), cut after `limit` characters.
func printable(_ text: some StringProtocol, limit: Int = 200) -> String {
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

/// The text in quotes, safe to show.
func quoted(_ text: some StringProtocol) -> String { "\"\(printable(text, limit: 60))\"" }

/// The bytes as text in quotes, safe to show.
func quoted(_ bytes: ArraySlice<UInt8>) -> String { quoted(String(decoding: bytes, as: UTF8.self)) }

/// The known name nearest to a wrong one, where one is near enough to be meant.
func nearest(to wrong: String, among known: [String]) -> String? {
  let letters = Array(wrong.lowercased().utf8.prefix(64))
  let best = known.map { (name: $0, steps: editDistance(letters, Array($0.utf8))) }.min { $0.steps < $1.steps }
  guard let best, best.steps <= max(1, min(letters.count, best.name.utf8.count) / 3) else { return nil }
  return best.name
}

/// The least number of letters to insert, remove, replace or swap with their neighbour.
private func editDistance(_ one: [UInt8], _ other: [UInt8]) -> Int {
  var beforeLast: [Int] = []
  var last = Array(0...other.count)
  for row in one.indices {
    var current = [row + 1]
    for column in other.indices {
      var steps = min(last[column + 1] + 1, current[column] + 1, last[column] + (one[row] == other[column] ? 0 : 1))
      if row > 0, column > 0, one[row] == other[column - 1], one[row - 1] == other[column] {
        steps = min(steps, beforeLast[column - 1] + 1)
      }
      current.append(steps)
    }
    beforeLast = last
    last = current
  }
  return last[other.count]
}
