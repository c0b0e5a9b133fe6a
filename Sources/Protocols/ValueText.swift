// Values as text, and their validation against a declaration. Shared by the daemon, the command line and the configuration, so
// that all three accept the same values and report the same errors.

/// The reason why a value was rejected: the problem, then a valid alternative.
public struct ValueError: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String

  /// Creates an error with this message.
  public init(_ description: String) {
    self.description = description
  }
}

/// The constraints on a value: the part of a declaration that validation needs.
public struct ValueRule: Sendable, Equatable {
  public var type: ValueType
  public var unit: String?
  public var range: ClosedRange<Double>?
  public var choices: [String]

  /// Creates a rule.
  public init(_ type: ValueType, unit: String? = nil, range: ClosedRange<Double>? = nil, choices: [String] = []) {
    self.type = type
    self.unit = unit
    self.range = range
    self.choices = choices
  }

  /// Returns the value in the declared type (an integer is accepted as a float, an integral float as an integer), or throws.
  public func accept(_ value: Value) throws(ValueError) -> Value {
    let typed: Value
    switch (type, value) {
    case (.float, .int(let number)): typed = .float(Double(number))
    case (.int, .float(let number)) where number.rounded() == number && abs(number) < 0x1p53: typed = .int(Int(number))
    case _ where value.type == type: typed = value
    case (_, .string(let string)): throw ValueError("\"\(string)\" is a string, not \(type.article)")
    default: throw ValueError("\(value.text) is not \(type.article)")
    }
    if let number = typed.number, !number.isFinite { throw ValueError("\(number) is not a finite number") }
    if let range, let number = typed.number, !range.contains(number) {
      let limits = "\(Value.text(range.lowerBound)) to \(Value.text(range.upperBound))\(unit.map { " \($0)" } ?? "")"
      throw ValueError("\(typed.text) is outside \(limits)")
    }
    if !choices.isEmpty, case .string(let string) = typed, !choices.contains(string) {
      throw ValueError("\"\(string)\" is not one of \(choices.joined(separator: ", "))")
    }
    return typed
  }

  /// Parses text that a user typed. Booleans are on/off, true/false, yes/no, 1/0; lists are comma-separated.
  public func parse(_ text: String) throws(ValueError) -> Value {
    let value: Value
    switch type {
    case .string: value = .string(text)
    case .list: value = .list(text.isEmpty ? [] : text.split(separator: ",", omittingEmptySubsequences: false).map(String.init))
    case .int:
      guard let number = Int(text) else { throw ValueError("\"\(text)\" is not a whole number") }
      value = .int(number)
    case .float:
      guard let number = Double(text), number.isFinite else { throw ValueError("\"\(text)\" is not a number") }
      value = .float(number)
    case .bool:
      switch text.lowercased() {
      case "on", "true", "yes", "1": value = .bool(true)
      case "off", "false", "no", "0": value = .bool(false)
      default: throw ValueError("\"\(text)\" is not a boolean; use on or off")
      }
    }
    return try accept(value)
  }
}

extension Property {
  /// The constraints on values of this property.
  public var rule: ValueRule { ValueRule(type, unit: unit, range: range, choices: choices) }
}

extension ValueType {
  /// The name of the type with its article, for messages: "a whole number".
  public var article: String {
    switch self {
    case .bool: "a boolean (true or false)"
    case .int: "a whole number"
    case .float: "a number"
    case .string: "a string"
    case .list: "a list of strings"
    }
  }
}

extension Value {
  /// The value for display: `on`, `3737`, `56.4`, `eco`, `a,b`. Integral floats are shown without a fraction.
  public var text: String {
    switch self {
    case .bool(let value): value ? "on" : "off"
    case .int(let value): String(value)
    case .float(let value): Value.text(value)
    case .string(let value): value
    case .list(let values): values.joined(separator: ",")
    }
  }

  /// The shortest form of a number that parses back to it.
  public static func text(_ number: Double) -> String {
    number.rounded() == number && abs(number) < 1e15 ? String(Int64(number)) : String(number)
  }
}

/// Untrusted text without invisible characters, truncated to `limit` scalars.
package func visible(_ text: String, limit: Int) -> String {
  var result = ""
  for scalar in text.unicodeScalars.prefix(limit) {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: continue
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}
