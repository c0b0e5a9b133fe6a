// Checks the tables of a TOML file against tables of known keys. All problems are collected, each with the location of the key or value.

import Protocols
import ServiceRuntime

/// A check of a configuration that collects all problems.
public protocol TableCheck {
  /// The problems found so far.
  var problems: [ConfigurationProblem] { get set }
}

extension TableCheck {
  /// The checked value of a key; nil if it is absent or invalid.
  public mutating func value(_ name: String, of options: [Option], in table: TOML.Table) -> Value? {
    guard let entry = table[name], let option = options.first(where: { $0.name == name }) else { return nil }
    return accept(entry, option)
  }

  /// The checked value of an entry; nil if it is invalid.
  public mutating func accept(_ entry: TOML.Entry, _ option: Option) -> Value? {
    do throws(ValueError) {
      return try option.rule.accept(entry.value.content, for: option.name)
    } catch {
      report(entry.value.location, "\(option.name): \(error.description)")
      return nil
    }
  }

  /// The table of a section; nil if the entry is a key.
  public mutating func section(_ entry: TOML.Entry, form: String) -> TOML.Table? {
    if case .table(let table) = entry.value.content { return table }
    report(entry.location, "\(printable(entry.key, limit: 60)) is a section, not a key; write \(form) and its keys below it")
    return nil
  }

  /// Reports the entries that are neither known keys nor sections. `owner` is what the table describes.
  public mutating func rejectUnknown(in table: TOML.Table, known: [String], sections: [String] = [], of owner: String? = nil) {
    for entry in table.entries where !known.contains(entry.key) && !sections.contains(entry.key) {
      guard problems.count < 1000 else { return }
      let suffix = owner.map { " for \($0)" } ?? ""
      if case .table = entry.value.content {
        let remedy = sections.isEmpty ? "remove it" : suggestion(for: entry.key, among: sections)
        report(entry.location, "unknown section \(quoted(entry.key))\(suffix); \(remedy)")
      } else {
        report(entry.location, "unknown key \(quoted(entry.key))\(suffix); \(suggestion(for: entry.key, among: known))")
      }
    }
  }

  /// Returns the remedy for an unknown name.
  public func suggestion(for wrong: String, among known: [String]) -> String {
    if let name = Renames.option(wrong), known.contains(name) { return "it has been renamed to \(name)" }
    return nearest(to: wrong, among: known).map { "did you mean \($0)?" } ?? "use one of \(known.joined(separator: ", "))"
  }

  /// Adds a problem.
  public mutating func report(_ location: SourceLocation, _ text: String) {
    problems.append(ConfigurationProblem(location, text))
  }
}
