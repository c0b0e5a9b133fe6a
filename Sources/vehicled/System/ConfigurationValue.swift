// TOML's values as the contract's, and what a rule wants in words.

import Protocols

extension TOML.Content {
  /// The value, where a device could take it.
  var value: Value? {
    switch self {
    case .string(let text): return .string(text)
    case .integer(let number): return .int(number)
    case .float(let number): return .float(number)
    case .bool(let flag): return .bool(flag)
    case .array(let nodes):
      let texts = nodes.compactMap { node in if case .string(let text) = node.content { text } else { nil as String? } }
      return texts.count == nodes.count ? .list(texts) : nil
    case .table, .date: return nil
    }
  }

  /// What it is, in a sentence.
  var article: String {
    switch self {
    case .table: "a section"
    case .date: "a date"
    case .array: "a list with more than texts in it"
    default: value?.type.article ?? "this"
    }
  }
}

extension ValueRule {
  /// What would be right: "a whole number from 0 to 100 polls/s".
  var wish: String {
    if !choices.isEmpty { return "one of \(choices.joined(separator: ", "))" }
    guard let range else { return type.article }
    let unit = unit.map { " \($0)" } ?? ""
    return "\(type.article) from \(Value.text(range.lowerBound)) to \(Value.text(range.upperBound))\(unit)"
  }
}
