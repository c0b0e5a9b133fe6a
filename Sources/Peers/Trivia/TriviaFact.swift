// A fact that the toy can speak, and how a text becomes one. The toy takes every byte between double quotes in the whole answer
// as the fact, understands no escapes and knows ASCII only; so what would end or break it is replaced by what reads the same, and
// what cannot be is refused. Must never let anything else through.
// Facts: triviatoy.md §C.

import Protocols

/// A fact of the trivia toy.
public struct TriviaFact: Sendable, Equatable {
  /// In ASCII characters; the original's database had room for so many.
  public static let longest = 500

  /// From 1.
  public var id: Int
  /// One line of 1 to 500 printable ASCII characters without `"` and `\`.
  public var text: String

  /// A fact that the toy can speak, or what it cannot.
  public init(_ id: Int, _ text: some StringProtocol) throws(ValueError) { (self.id, self.text) = (id, try Self.speakable(text)) }

  /// A fact from a store, which may have been written to by others; the server looks at it before a toy gets it.
  public init(_ id: Int, stored text: String) { (self.id, self.text) = (id, text) }

  /// The text as the toy can speak it.
  static func speakable(_ text: some StringProtocol) throws(ValueError) -> String {
    var plain = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": throw ValueError("a backslash, which the toy cannot speak: leave it out")
      case "\"": plain += "'"
      case " "..."~": plain.unicodeScalars.append(scalar)
      default:
        guard let other = replacements[scalar] else {
          throw ValueError("U+\(String(scalar.value, radix: 16, uppercase: true)), which the toy cannot speak: write it in ASCII")
        }
        plain += other
      }
    }
    while plain.first == " " { plain.removeFirst() }
    while plain.last == " " { plain.removeLast() }
    guard !plain.isEmpty else { throw ValueError("no fact: write one") }
    guard plain.utf8.count <= longest else { throw ValueError("\(plain.utf8.count) characters: \(longest) are the most") }
    return plain
  }

  private static let replacements: [Unicode.Scalar: String] = {
    let same: KeyValuePairs = [
      "“”„‟«»‹›‘’‚‛′″´": "'", "‐‑‒–—―−": "-", "\t\u{A0}\u{2002}\u{2003}\u{2009}\u{202F}": " ", "…": "...", "×": "x", "°": " degrees",
      "²": "2", "³": "3", "àáâãå": "a", "ÀÁÂÃÅ": "A", "äæ": "ae", "ÄÆ": "Ae", "ç": "c", "Ç": "C", "èéêë": "e", "ÈÉÊË": "E", "ìíîï": "i",
      "ÌÍÎÏ": "I", "ñ": "n", "Ñ": "N", "òóôõø": "o", "ÒÓÔÕØ": "O", "öœ": "oe", "ÖŒ": "Oe", "ùúû": "u", "ÙÚÛ": "U", "ü": "ue", "Ü": "Ue",
      "ß": "ss",
    ]
    var all: [Unicode.Scalar: String] = [:]
    for (scalars, text) in same { for scalar in scalars.unicodeScalars { all[scalar] = text } }
    return all
  }()
}

extension TriviaFact {
  /// Facts from a file: one a line, with the ids from 500 on, which are the ones that toys fetch; a line may begin with an id of
  /// its own and a tab. Empty lines do not count. All lines that cannot be are named, up to ten of them.
  public static func list(_ file: [UInt8]) throws(ValueError) -> [TriviaFact] {
    guard let all = String(validating: file.starts(with: [0xEF, 0xBB, 0xBF]) ? file[3...] : file[...], as: UTF8.self) else {
      throw ValueError("it is not UTF-8: save it as that, or as ASCII")
    }
    var (facts, wrong): ([TriviaFact], [String]) = ([], [])
    var (next, ids) = (TriviaUser.shipped + 1, Set<Int>())
    let lines = all.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    for (number, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) {
      do throws(ValueError) {
        let parts = line.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false)
        let own = parts.count == 2 ? Int(parts[0]) : nil
        let id = own ?? next
        guard (1...Int(Int32.max) - 1).contains(id) else { throw ValueError("the id \(id): ids go from 1 to \(Int32.max - 1)") }
        next = id + 1
        guard ids.insert(id).inserted else { throw ValueError("the id \(id) again: each stands for one fact") }
        facts.append(try TriviaFact(id, own == nil ? line : parts[1]))
      } catch {
        wrong.append("line \(number + 1) has \(error.description)")
      }
    }
    guard wrong.isEmpty else {
      throw ValueError(wrong.prefix(10).joined(separator: "; ") + (wrong.count > 10 ? "; and \(wrong.count - 10) lines more" : ""))
    }
    guard !facts.isEmpty else { throw ValueError("there is no fact in it: write one a line") }
    return facts
  }
}
