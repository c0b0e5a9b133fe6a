// Converts TOML values to property values, with messages for values that a key does not accept.

import Protocols
import ServiceRuntime

extension TOML.Content {
  /// The value; nil if no key can have a value of this type.
  public var value: Value? {
    switch self {
    case .string(let text): return .string(text)
    case .integer(let number): return .int(number)
    case .float(let number): return .float(number)
    case .bool(let flag): return .bool(flag)
    case .array(let nodes):
      let strings = nodes.compactMap { node in if case .string(let text) = node.content { text } else { nil as String? } }
      return strings.count == nodes.count ? .list(strings) : nil
    case .table, .date: return nil
    }
  }

  /// The value and its type, such as `"20" is a string`.
  fileprivate var description: String {
    switch self {
    case .string(let text): "\(quoted(text)) is a string"
    case .integer(let number): "\(number) is an integer"
    case .float(let number): "\(Value.text(number)) is a number"
    case .bool(let flag): "\(flag) is a boolean"
    case .array(let nodes): value == nil && !nodes.isEmpty ? "the list contains values that are not strings" : "this is a list"
    case .date: "this is a date"
    case .table: "this is a section"
    }
  }
}

extension ValueRule {
  /// Returns the value for the key. The error describes the problem and the remedy.
  public func accept(_ content: TOML.Content, for key: String) throws(ValueError) -> Value {
    guard let value = content.value else { throw ValueError("\(content.description); use \(expected)") }
    do throws(ValueError) {
      return try accept(value)
    } catch {
      throw ValueError(problem(with: content, for: key))
    }
  }

  private func problem(with content: TOML.Content, for key: String) -> String {
    switch (content, type) {
    case (.string(let text), .string):
      if let name = Renames.value(text, of: key) { return "unknown value \(quoted(text)); it has been renamed to \(name)" }
      let remedy = nearest(to: text, among: choices).map { "did you mean \($0)?" } ?? "use \(expected)"
      return "unknown value \(quoted(text)); \(remedy)"
    case (.string(let text), .list): return "\(content.description); write \(key) = [\(quoted(text))]"
    case (.string(let text), .int), (.string(let text), .float):
      return "\(content.description); \((try? parse(text)) == nil ? "use \(expected)" : "remove the quotes")"
    case (.string("true"), .bool), (.string("false"), .bool): return "\(content.description); remove the quotes"
    case (.integer, .string) where choices.isEmpty, (.float, .string) where choices.isEmpty, (.bool, .string) where choices.isEmpty:
      return "\(content.description); put it in quotes"
    case (.float(let number), .int) where number.isFinite && number.rounded() != number:
      return "\(Value.text(number)) has a fraction; use \(expected)"
    case (.float(let number), .int) where !number.isFinite, (.float(let number), .float) where !number.isFinite:
      return "\(number) is not a finite number; use \(expected)"
    case (.integer(let number), .int), (.integer(let number), .float): return "\(number) is out of range; use \(expected)"
    case (.float(let number), .int), (.float(let number), .float): return "\(Value.text(number)) is out of range; use \(expected)"
    default: return "\(content.description); use \(expected)"
    }
  }

  /// What the key accepts, such as `a whole number from 0 to 100 polls/s`.
  private var expected: String {
    if !choices.isEmpty { return "one of \(choices.joined(separator: ", "))" }
    let noun =
      switch type {
      case .bool: "true or false"
      case .int: "a whole number"
      case .float: "a number"
      case .string: "a string in quotes"
      case .list: "a list of strings, as in [\"one\", \"two\"]"
      }
    guard let range else { return noun }
    let unit = unit.map { " \($0)" } ?? ""
    return "\(noun) from \(Value.text(range.lowerBound)) to \(Value.text(range.upperBound))\(unit)"
  }
}
