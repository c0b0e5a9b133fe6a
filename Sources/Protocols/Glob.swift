// Shell patterns for names.

/// A shell pattern: `*` matches any text, `?` one character, `[abc]` or `[a-z]` one of these characters, `[!abc]` any other character.
public struct Glob: Sendable, Equatable {
  private let pattern: [Character]

  public init(_ pattern: Substring) { self.pattern = Array(pattern) }

  /// Whether the text has a character that makes it a pattern.
  public static func isPattern(_ text: String) -> Bool { text.contains { "*?[".contains($0) } }

  /// Whether the whole text matches.
  public func matches(_ text: String) -> Bool {
    let text = Array(text)
    var (at, position) = (0, 0)
    // Where to resume if the match fails after the last star: the positions in the pattern and in the text.
    var star: (pattern: Int, text: Int)?
    while position < text.count {
      if at < pattern.count, pattern[at] == "*" {
        star = (at + 1, position)
        at += 1
      } else if let length = length(at, accepting: text[position]) {
        at += length
        position += 1
      } else if let last = star {
        star = (last.pattern, last.text + 1)
        (at, position) = (last.pattern, last.text + 1)
      } else {
        return false
      }
    }
    return pattern[at...].allSatisfy { $0 == "*" }
  }

  /// The length of the pattern's element at this position; nil if the element does not match the character.
  private func length(_ at: Int, accepting character: Character) -> Int? {
    guard at < pattern.count else { return nil }
    switch pattern[at] {
    case "?": return 1
    case "[":
      let isNegated = at + 1 < pattern.count && pattern[at + 1] == "!"
      let first = at + (isNegated ? 2 : 1)
      guard first < pattern.count, let end = pattern[(first + 1)...].firstIndex(of: "]") else { return character == "[" ? 1 : nil }
      return contains(first..<end, character) != isNegated ? end + 1 - at : nil
    default: return pattern[at] == character ? 1 : nil
    }
  }

  private func contains(_ set: Range<Int>, _ character: Character) -> Bool {
    var at = set.lowerBound
    while at < set.upperBound {
      if at + 2 < set.upperBound, pattern[at + 1] == "-" {
        if pattern[at] <= character, character <= pattern[at + 2] { return true }
        at += 3
      } else if pattern[at] == character {
        return true
      } else {
        at += 1
      }
    }
    return false
  }
}
