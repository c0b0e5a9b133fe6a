// Values to and from what people and programs write, held against the table that declares them. One place, so that the
// daemon, the command line and the configuration accept and refuse the same things with the same words.

/// Why a value was refused: what is wrong, then what would be right.
public struct ValueError: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String

  /// An error with this wording.
  public init(_ description: String) {
    self.description = description
  }
}

/// What a value must be: the part of a declaration that a check needs.
public struct ValueRule: Sendable, Equatable {
  public var type: ValueType
  public var unit: String?
  public var range: ClosedRange<Double>?
  public var choices: [String]

  /// A rule for values of this type, in this range and of these choices.
  public init(_ type: ValueType, unit: String? = nil, range: ClosedRange<Double>? = nil, choices: [String] = []) {
    self.type = type
    self.unit = unit
    self.range = range
    self.choices = choices
  }

  /// The value in the declared type (an integer serves as a float, a whole float as an integer), or why it cannot be.
  public func accept(_ value: Value) throws(ValueError) -> Value {
    let typed: Value
    switch (type, value) {
    case (.float, .int(let number)): typed = .float(Double(number))
    case (.int, .float(let number)) where number.rounded() == number && abs(number) < 0x1p53: typed = .int(Int(number))
    case _ where value.type == type: typed = value
    default: throw ValueError("\(value.text) is not \(type.article)")
    }
    if let number = typed.number, !number.isFinite { throw ValueError("\(number) is not a number") }
    if let range, let number = typed.number, !range.contains(number) {
      let limits = "\(Value.text(range.lowerBound)) to \(Value.text(range.upperBound))\(unit.map { " \($0)" } ?? "")"
      throw ValueError("\(typed.text) is outside \(limits)")
    }
    if !choices.isEmpty, case .string(let string) = typed, !choices.contains(string) {
      throw ValueError("\"\(string)\" is not one of \(choices.joined(separator: ", "))")
    }
    return typed
  }

  /// Reads what a person typed. Booleans take on/off, true/false, yes/no, 1/0; lists are comma-separated.
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
      default: throw ValueError("\"\(text)\" is neither on nor off")
      }
    }
    return try accept(value)
  }
}

extension Property {
  /// What a value of this property must be.
  public var rule: ValueRule { ValueRule(type, unit: unit, range: range, choices: choices) }
}

extension ValueType {
  /// The type in a sentence: "a whole number".
  public var article: String {
    switch self {
    case .bool: "a truth value (true or false)"
    case .int: "a whole number"
    case .float: "a number"
    case .string: "a text"
    case .list: "a list of texts"
    }
  }
}

extension Value {
  /// The value as a person reads it: `on`, `3737`, `56.4`, `eco`, `a,b`. Whole floats print without a fraction.
  public var text: String {
    switch self {
    case .bool(let value): value ? "on" : "off"
    case .int(let value): String(value)
    case .float(let value): Value.text(value)
    case .string(let value): value
    case .list(let values): values.joined(separator: ",")
    }
  }

  /// A number in its shortest form that reads back the same.
  public static func text(_ number: Double) -> String {
    number.rounded() == number && abs(number) < 1e15 ? String(Int64(number)) : String(number)
  }
}

/// Foreign text without what cannot be seen, cut after so many scalars.
func visible(_ text: String, limit: Int) -> String {
  var result = ""
  for scalar in text.unicodeScalars.prefix(limit) {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: continue
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}
