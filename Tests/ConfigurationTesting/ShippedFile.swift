// A configuration file that is installed with a program: every key is in it, as a comment with its default.

import ConfigurationFiles
import Protocols

public enum ShippedFile {
  /// The text with all keys and sections that are comments as if they were set.
  public static func uncommented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> Substring in
      guard line.hasPrefix("#"), let next = line.dropFirst().first, next == "[" || next.isLowercase else { return line }
      return line.dropFirst()
    }.joined(separator: "\n")
  }

  /// How a table differs from the keys with their defaults. `others` are its sections, and `examples` the keys whose value is an example.
  public static func problems(
    _ table: TOML.Table, _ options: [Protocols.Option], others: [String] = [], examples: Set<String> = []
  ) -> [String] {
    let names = Set(options.map(\.name) + others)
    let found = Set(table.entries.map(\.key))
    return names.symmetricDifference(found).sorted()
      + options.compactMap { option in
        guard !examples.contains(option.name), let fallback = option.defaultValue, let value = table[option.name]?.value.content.value
        else {
          return nil
        }
        return (try? option.rule.accept(value)) == fallback ? nil : "\(option.name) has another default"
      }
  }
}
