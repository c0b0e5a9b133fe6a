// Parses the condition of an alert. No I/O.
//
//   condition = clauses ["for" DURATION]         aux-battery-voltage < 11.9 for 10min
//   clauses   = clause { ("and" | "or") clause }  "and" binds more closely
//   clause    = REFERENCE (< | <= | > | >= | = | !=) NUMBER
//             | REFERENCE "is" ["not"] WORD      on, off, or a possible value of the property
//             | REFERENCE "rose" | "fell" | "changed"
//             | DEVICE "is" "down"               there is no connection to the vehicle
//             | [DEVICE "."] ("trip" | "charge" | "parking") ("started" | "ended")
//
// A reference is DEVICE.PROPERTY, or PROPERTY for any device.

import Protocols
import ServiceRuntime
import Trips

/// The reason why a condition is invalid.
struct AlertSyntaxError: Error, Equatable {
  /// The byte offset in the text.
  var offset: Int
  var message: String
}

struct AlertCondition: Equatable, Sendable {
  struct Reference: Equatable, Sendable {
    /// The device, or nil for any device.
    var device: String?
    var property: String
  }

  enum Comparison: String, Sendable {
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case equal = "="
    case notEqual = "!="
  }

  enum Change: String, Sendable {
    case rose, fell, changed
  }

  enum Clause: Equatable, Sendable {
    case compare(Reference, Comparison, Double)
    case matches(Reference, String, isNegated: Bool)
    case change(Reference, Change)
    case isDown(device: String)
    case period(device: String?, DetectedPeriod.Kind, hasEnded: Bool)
  }

  let text: String
  /// Lists of clauses. The condition holds if all clauses of at least one list hold.
  let alternatives: [[Clause]]
  /// How long the condition must hold, in µs.
  let duration: Int64

  init(_ text: String) throws(AlertSyntaxError) {
    self.text = text
    var parser = AlertParser(text)
    alternatives = try parser.alternatives()
    duration = try parser.duration()
  }
}

private struct AlertParser {
  private struct Token {
    var text: String
    var offset: Int
  }

  private static let durations: [(name: String, microseconds: Int64)] = [
    ("s", 1_000_000), ("min", 60_000_000), ("h", 3_600_000_000), ("d", 86_400_000_000),
  ]

  private var tokens: ArraySlice<Token>
  private let end: Int

  init(_ text: String) {
    var tokens: [Token] = []
    var isOperator = false
    var offset = 0
    for character in text {
      defer { offset += character.utf8.count }
      if character == " " || character == "\t" {
        isOperator = false
        if tokens.last?.text.isEmpty == false { tokens.append(Token(text: "", offset: offset)) }
        continue
      }
      let belongsToOperator = "<>=!".contains(character)
      if tokens.isEmpty || tokens[tokens.count - 1].text.isEmpty {
        if tokens.isEmpty { tokens.append(Token(text: "", offset: offset)) }
        tokens[tokens.count - 1].offset = offset
      } else if belongsToOperator != isOperator {
        tokens.append(Token(text: "", offset: offset))
      }
      isOperator = belongsToOperator
      tokens[tokens.count - 1].text.append(character)
    }
    self.tokens = tokens.filter { !$0.text.isEmpty }[...]
    end = text.utf8.count
  }

  mutating func alternatives() throws(AlertSyntaxError) -> [[AlertCondition.Clause]] {
    var alternatives = [[try clause()]]
    while let word = tokens.first?.text, word == "and" || word == "or" {
      tokens = tokens.dropFirst()
      if word == "and" { alternatives[alternatives.count - 1].append(try clause()) } else { alternatives.append([try clause()]) }
    }
    return alternatives
  }

  mutating func duration() throws(AlertSyntaxError) -> Int64 {
    guard let token = tokens.popFirst() else { return 0 }
    guard token.text == "for" else {
      throw failure(at: token, "unexpected \(quoted(token.text)); continue with and, or, or for and a duration, as in for 10min")
    }
    guard let time = tokens.popFirst() else {
      throw AlertSyntaxError(offset: end, message: "missing duration after for; add one, as in for 10min")
    }
    var text = time.text
    if Double(text) != nil, let unit = tokens.popFirst() { text += unit.text }
    let digits = text.prefix { $0.isNumber || $0 == "." }
    guard let number = Double(digits), let unit = Self.durations.first(where: { $0.name == text.dropFirst(digits.count) }),
      (0...31_536_000).contains(number * Double(unit.microseconds) / 1e6)
    else { throw failure(at: time, "invalid duration \(quoted(text)); use one such as 30s, 10min, 1h or 2d, up to a year") }
    if let rest = tokens.first { throw failure(at: rest, "unexpected \(quoted(rest.text)) after the duration; remove it") }
    return Int64(number * Double(unit.microseconds))
  }

  private mutating func clause() throws(AlertSyntaxError) -> AlertCondition.Clause {
    guard let subject = tokens.popFirst() else {
      throw AlertSyntaxError(offset: end, message: "missing property; write a condition such as state-of-charge >= 80")
    }
    let parts = subject.text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count <= 2, parts.allSatisfy({ isName($0) }) else {
      throw failure(at: subject, "invalid property \(quoted(subject.text)); use DEVICE.PROPERTY or PROPERTY, as in ev.speed")
    }
    let reference = AlertCondition.Reference(device: parts.count == 2 ? parts[0] : nil, property: parts[parts.count - 1])
    guard let verb = tokens.popFirst() else {
      throw AlertSyntaxError(offset: end, message: "missing comparison; use one of <, <=, >, >=, =, !=, is, rose, fell, changed")
    }
    switch verb.text {
    case "is": return try isClause(subject, reference)
    case "rose", "fell", "changed":
      guard let change = AlertCondition.Change(rawValue: verb.text) else { break }
      return .change(reference, change)
    case "started", "ended":
      guard let kind = DetectedPeriod.Kind(rawValue: reference.property) else {
        throw failure(at: subject, "\(verb.text) requires a period; use trip, charge or parking")
      }
      return .period(device: reference.device, kind, hasEnded: verb.text == "ended")
    default:
      guard let comparison = AlertCondition.Comparison(rawValue: verb.text == "==" ? "=" : verb.text) else { break }
      guard let number = tokens.popFirst() else {
        throw AlertSyntaxError(offset: end, message: "missing number after \(verb.text); add one")
      }
      guard let value = Double(number.text), value.isFinite else {
        throw failure(at: number, "\(quoted(number.text)) is not a number; use is to compare words, as in gear is park")
      }
      return .compare(reference, comparison, value)
    }
    throw failure(at: verb, "unknown comparison \(quoted(verb.text)); use one of <, <=, >, >=, =, !=, is, rose, fell, changed")
  }

  private mutating func isClause(_ subject: Token, _ reference: AlertCondition.Reference) throws(AlertSyntaxError) -> AlertCondition.Clause
  {
    let isNegated = tokens.first?.text == "not"
    if isNegated { tokens = tokens.dropFirst() }
    guard let word = tokens.popFirst() else {
      throw AlertSyntaxError(offset: end, message: "missing value after is; add one, as in mil is on")
    }
    if word.text == "down", reference.device == nil {
      guard !isNegated else { throw failure(at: word, "\"is not down\" is not supported; use \(subject.text) is down") }
      return .isDown(device: reference.property)
    }
    if let number = Double(word.text), number.isFinite { return .compare(reference, isNegated ? .notEqual : .equal, number) }
    return .matches(reference, word.text, isNegated: isNegated)
  }

  private func isName(_ text: String) -> Bool {
    text.first?.isLetter == true && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
  }

  private func failure(at token: Token, _ message: String) -> AlertSyntaxError { AlertSyntaxError(offset: token.offset, message: message) }
}
