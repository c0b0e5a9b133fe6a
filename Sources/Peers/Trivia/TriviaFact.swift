// Facts that the toy can speak. The toy interprets all bytes between double quotes in the reply as the fact, without escape sequences, and
// speaks only ASCII. So other characters are transliterated or rejected. Source: microprocessor.ino of neils95/Trivio.

import Protocols

/// A fact of the trivia toy.
public struct TriviaFact: Sendable, Equatable {
  /// The maximum length in characters, as in the original's database column.
  public static let maxLength = 500

  /// The id, counted from 1.
  public var id: Int
  /// One line of 1 to 500 printable ASCII characters without `"` and `\`.
  public var text: String

  /// Creates a fact. Throws if the toy cannot speak it.
  public init(_ id: Int, _ text: some StringProtocol) throws(ValueError) { (self.id, self.text) = (id, try Self.speakable(text)) }

  /// Creates a fact from a store, without validation: the server validates it when a toy downloads it.
  public init(_ id: Int, stored text: String) { (self.id, self.text) = (id, text) }

  /// Transliterates a text to characters that the toy can speak. Throws if this is impossible.
  static func speakable(_ text: some StringProtocol) throws(ValueError) -> String {
    var plain = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": throw ValueError("a backslash, which the toy cannot speak: remove it")
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
    guard !plain.isEmpty else { throw ValueError("no text: write a fact") }
    guard plain.utf8.count <= maxLength else { throw ValueError("\(plain.utf8.count) characters, more than \(maxLength)") }
    return plain
  }

  private static let replacements: [Unicode.Scalar: String] = {
    let groups: KeyValuePairs = [
      "“”„‟«»‹›‘’‚‛′″´": "'", "‐‑‒–—―−": "-", "\t\u{A0}\u{2002}\u{2003}\u{2009}\u{202F}": " ", "…": "...", "×": "x", "°": " degrees",
      "²": "2", "³": "3", "àáâãå": "a", "ÀÁÂÃÅ": "A", "äæ": "ae", "ÄÆ": "Ae", "ç": "c", "Ç": "C", "èéêë": "e", "ÈÉÊË": "E", "ìíîï": "i",
      "ÌÍÎÏ": "I", "ñ": "n", "Ñ": "N", "òóôõø": "o", "ÒÓÔÕØ": "O", "öœ": "oe", "ÖŒ": "Oe", "ùúû": "u", "ÙÚÛ": "U", "ü": "ue", "Ü": "Ue",
      "ß": "ss",
    ]
    var all: [Unicode.Scalar: String] = [:]
    for (scalars, text) in groups { for scalar in scalars.unicodeScalars { all[scalar] = text } }
    return all
  }()
}

extension TriviaFact {
  /// Parses a file of facts, one per line. Their ids start at 500, the first id that toys download. A line may start with its own id and a
  /// tab. Empty lines are skipped. The error lists up to ten invalid lines.
  public static func list(_ file: [UInt8]) throws(ValueError) -> [TriviaFact] {
    guard let text = String(validating: file.starts(with: [0xEF, 0xBB, 0xBF]) ? file[3...] : file[...], as: UTF8.self) else {
      throw ValueError("not UTF-8: save the file as UTF-8")
    }
    var (facts, problems): ([TriviaFact], [String]) = ([], [])
    var (next, ids) = (TriviaUser.lastShippedFact + 1, Set<Int>())
    let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    for (number, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) {
      do throws(ValueError) {
        let parts = line.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false)
        let explicitID = parts.count == 2 ? Int(parts[0]) : nil
        let id = explicitID ?? next
        guard (1...Int(Int32.max) - 1).contains(id) else { throw ValueError("the id \(id): use 1 to \(Int32.max - 1)") }
        next = id + 1
        guard ids.insert(id).inserted else { throw ValueError("the duplicate id \(id)") }
        facts.append(try TriviaFact(id, explicitID == nil ? line : parts[1]))
      } catch {
        problems.append("line \(number + 1) has \(error.description)")
      }
    }
    guard problems.isEmpty else {
      throw ValueError(problems.prefix(10).joined(separator: "; ") + (problems.count > 10 ? "; and \(problems.count - 10) more lines" : ""))
    }
    guard !facts.isEmpty else { throw ValueError("no facts in the file: write one per line") }
    return facts
  }
}
