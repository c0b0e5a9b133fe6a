// A manual page of a program with a configuration: whether it documents every key and option. Problems are returned as texts, because a
// build with the static standard library has no Testing.

import Foundation
import Protocols

public struct ManualPage {
  /// The lines of the page, without backslashes.
  public let lines: [String]

  /// Reads a page.
  public init(_ path: String) throws {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    lines = text.replacingOccurrences(of: "\\", with: "").split(separator: "\n").map(String.init)
  }

  /// The lines below a heading, up to the next one; nil if there is no such heading.
  private func chapter(_ heading: String) -> [String]? {
    lines.firstIndex(of: heading).map { start in
      Array(lines[(start + 1)...].prefix { !$0.hasPrefix(".Sh ") && !$0.hasPrefix(".Ss ") })
    }
  }

  /// What the chapter lacks of these keys: their description, range, unit, choices or default.
  public func problems(_ heading: String, _ options: [Protocols.Option]) -> [String] {
    guard let chapter = chapter(heading) else { return ["there is no \(heading)"] }
    return options.flatMap { option -> [String] in
      guard let start = chapter.firstIndex(of: ".It Cm \(option.name)") else { return ["no description of \(option.name)"] }
      let text = chapter[(start + 1)...].prefix { !$0.hasPrefix(".It Cm ") }.joined(separator: " ")
      let found = Self.words(text)
      let ends = option.rule.range.map { [Value.text($0.lowerBound), Value.text($0.upperBound)] } ?? []
      var problems = (ends + (option.rule.unit.map { [$0] } ?? []) + option.rule.choices).filter { !found.contains($0) }
        .map { "\(option.name): \($0) is missing" }
      let parts = text.components(separatedBy: "Default:")
      let stated = parts.count == 2 ? Self.words(parts[1]) : nil
      if parts.count > 2 || stated != option.defaultValue.map(Self.written) { problems.append("\(option.name): wrong default") }
      return problems
    }
  }

  /// How the chapter on options differs from the help of the program.
  public func problems(options help: String) -> [String] {
    let lines = help.split(separator: "\n").filter { $0.hasPrefix("  -") }
    let options = Set(lines.compactMap { $0.split(separator: " ").first { $0.hasPrefix("--") }.map { String($0.dropFirst(2)) } })
    let items = (chapter(".Sh OPTIONS") ?? []).filter { $0.hasPrefix(".It ") }
    let named = Set(items.compactMap { $0.components(separatedBy: "Fl Fl ").last?.split(separator: " ").first.map(String.init) })
    return options.isEmpty ? ["the help has no options"] : options.symmetricDifference(named).sorted()
  }

  /// A default as the page states it.
  private static func written(_ value: Value) -> [String] {
    switch value {
    case .bool(let flag): [flag ? "true" : "false"]
    case .list(let texts): texts
    default: [value.text]
    }
  }

  /// The words of a text, without macros and final punctuation.
  private static func words(_ text: String) -> [String] {
    text.split { " ,;()[]\"".contains($0) }.filter { !$0.hasPrefix(".") }.map { word in
      String(word.last == "." || word.last == ":" ? word.dropLast() : word)
    }.filter { !$0.isEmpty }
  }
}
