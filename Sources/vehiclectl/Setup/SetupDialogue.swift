// Asks the questions of `setup`. Enter accepts the default. After an invalid answer, the question is repeated on a terminal; in piped
// input, an invalid answer is an error, because the next line answers another question. No I/O except in the closures.

import Protocols

struct SetupDialogue {
  /// Whether to accept every default without asking.
  var acceptsDefaults: Bool
  var isAtTerminal: Bool
  /// Shows a prompt and reads a line; nil at the end of the input.
  var ask: (String) throws(Failure) -> String?
  /// Shows a remark on an answer.
  var remark: (String) -> Void

  /// The answer to a question about the list.
  enum Choice: Equatable {
    case number(Int)
    case again
    case quit
    case invalid(String)
  }

  /// Parses the choice from a list of `count` entries. Enter selects the default, or scans again if there is none.
  static func choice(_ answer: String, of count: Int, default fallback: Int?) -> Choice {
    switch answer {
    case "": return fallback.map(Choice.number) ?? .again
    case "r", "R": return .again
    case "q", "Q": return .quit
    default:
      guard let number = Int(answer), (1...max(1, count)).contains(number), count > 0 else {
        return .invalid("\"\(answer)\" is not in the list; " + (count > 0 ? "enter 1 to \(count), r or q" : "enter r or q"))
      }
      return .number(number)
    }
  }

  /// Asks for an entry of the list.
  func choose(of count: Int, default fallback: Int?) throws(Failure) -> Choice {
    let prompt = count == 0 ? "r: scan again, q: quit [r]: " : "number, r: scan again, q: quit [\(fallback.map(String.init) ?? "r")]: "
    while true {
      let choice = Self.choice(try line(prompt), of: count, default: fallback)
      guard case .invalid(let message) = choice else { return choice }
      try reject(message)
    }
  }

  /// Asks for one of these words; a unique prefix is enough.
  func word(_ text: String, of choices: [String], default fallback: String) throws(Failure) -> String {
    guard !acceptsDefaults else { return fallback }
    while true {
      let answer = try line("\(text), \(choices.joined(separator: " or ")) [\(fallback)]: ")
      let found = choices.filter { $0.hasPrefix(answer) }
      if answer.isEmpty { return fallback }
      if let exact = choices.first(where: { $0 == answer }) ?? (found.count == 1 ? found.first : nil) { return exact }
      try reject("\"\(answer)\" is not one of \(choices.joined(separator: ", "))")
    }
  }

  /// Asks for a text; `problem` returns why an answer is invalid, or nil.
  func text(_ text: String, default fallback: String, problem: (String) -> String? = { _ in nil }) throws(Failure) -> String {
    guard !acceptsDefaults else { return fallback }
    while true {
      let answer = try line("\(text) [\(fallback)]: ")
      if answer.isEmpty { return fallback }
      guard let message = problem(answer) else { return answer }
      try reject(message)
    }
  }

  /// Asks for consent; Enter means yes.
  func agrees(_ text: String) throws(Failure) -> Bool {
    guard !acceptsDefaults else { return true }
    while true {
      switch try line("\(text) [Y/n]: ").lowercased() {
      case "", "y", "yes": return true
      case "n", "no": return false
      default: try reject("answer y or n")
      }
    }
  }

  private func line(_ prompt: String) throws(Failure) -> String {
    guard let answer = try ask(prompt) else {
      let question = prompt.prefix { $0 != "[" }.trimmed
      throw .usage("no answer to \"\(question)\": standard input has ended; run setup on a terminal, or use --yes")
    }
    return answer.trimmed
  }

  private func reject(_ message: String) throws(Failure) {
    guard isAtTerminal else { throw .usage(message) }
    remark(Output.oneLine(message))
  }
}

extension StringProtocol {
  /// The text without spaces and tabs around it.
  fileprivate var trimmed: String {
    let isSpace = { (character: Character) in character == " " || character == "\t" }
    var text = self[...].drop(while: isSpace)
    while let last = text.last, isSpace(last) { text.removeLast() }
    return String(text)
  }
}
