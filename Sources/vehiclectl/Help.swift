// Rearranges ArgumentParser's help of a command, which lists the common options first and does not wrap the usage. The printed help has the
// command's own arguments and options, then one line that names the common options. Only the help of vehiclectl itself explains the common
// options. No I/O except to find the width.

import Glibc

enum Help {
  /// The width to wrap to: that of the terminal or $COLUMNS, as in ArgumentParser, else 80.
  static var width: Int { Output.width ?? Environment["COLUMNS"].flatMap { Int($0) } ?? 80 }

  private struct Section {
    let title: String
    /// Each entry with its continuation lines.
    var entries: [String] = []
  }

  /// Rearranges ArgumentParser's help text; returns any other text unchanged.
  static func arranged(_ text: String, width: Int) -> String {
    let parts = text.split(separator: "\nUSAGE: ", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let end = parts[1].firstRange(of: "\n\n") else { return text }
    let isRoot = parts[1].hasPrefix("vehiclectl [")
    var (sections, footer) = sections(of: parts[1][end.upperBound...])
    let names = Set(entries(of: CommonOptions.helpMessage(columns: width)).map { name(of: $0) } + ["--version", "--help"])
    var common = Section(title: "COMMON OPTIONS")
    for index in sections.indices {
      common.entries += sections[index].entries.filter { names.contains(name(of: $0)) }
      sections[index].entries.removeAll { names.contains(name(of: $0)) }
    }
    if isRoot {
      sections.append(common)
    } else {
      let all = common.entries.map { name(of: $0) }.filter { $0 != "--version" }.joined(separator: ", ")
      footer += (footer.isEmpty ? "" : "\n\n")
      footer += "Common options, see \"vehiclectl --help\": \(all)".wrapped(to: width).joined(separator: "\n")
    }
    let blocks =
      [String(parts[0]), usage(parts[1][..<end.lowerBound], names, width: width)]
      + sections.filter { !$0.entries.isEmpty }.map { "\($0.title):\n" + $0.entries.joined(separator: "\n") + "\n" } + [footer]
    return blocks.joined(separator: "\n")
  }

  /// The sections, and the "See …" lines after them, if any.
  private static func sections(of text: Substring) -> ([Section], footer: String) {
    var sections: [Section] = []
    var footer: [Substring] = []
    for line in text.split(separator: "\n") {
      if line.hasSuffix(":"), !line.hasPrefix(" ") {
        // The title of a group of subcommands is `GROUP SUBCOMMANDS`.
        sections.append(Section(title: String(line.dropLast()).replacing(" SUBCOMMANDS", with: "")))
      } else if line.hasPrefix("  See ") {
        footer.append(line)
      } else if line.hasPrefix("   "), let last = sections.last?.entries.indices.last {
        sections[sections.count - 1].entries[last] += "\n\(line)"
      } else if !sections.isEmpty {
        sections[sections.count - 1].entries.append(String(line))
      }
    }
    return (sections, footer.joined(separator: "\n"))
  }

  private static func entries(of help: String) -> [String] { sections(of: help[...]).0.flatMap(\.entries) }

  /// The long name of an option: `--quiet` of `  -q, --quiet   Print …`; the label of any other entry.
  private static func name(of entry: String) -> String {
    let words = entry.prefix { $0 != "\n" }.split(separator: " ").map(String.init)
    return words.prefix(2).first { $0.hasPrefix("--") } ?? words.first ?? ""
  }

  /// The usage with `[<options>]` in place of the common options, each line wrapped between its elements.
  private static func usage(_ text: Substring, _ common: Set<String>, width: Int) -> String {
    let lines = text.split(separator: "\n").enumerated().map { index, line -> String in
      var elements = elements(of: line)
      let isCommon = { (element: String) in
        element.hasPrefix("[-") && common.contains(String(element.dropFirst().prefix { $0 != " " && $0 != "]" }))
      }
      if let first = elements.firstIndex(where: isCommon) {
        elements.removeAll(where: isCommon)
        elements.insert("[<options>]", at: first)
      }
      return wrapped(elements, first: index == 0 ? "USAGE: " : "       ", width: width)
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Splits `get [--count <n>] <ref> ...` into its words; bracketed groups are not split.
  private static func elements(of line: Substring) -> [String] {
    var elements: [String] = []
    var depth = 0
    for word in line.split(separator: " ").map(String.init) {
      if depth > 0 || word == "..." { elements[elements.count - 1] += " \(word)" } else { elements.append(word) }
      depth += word.count { $0 == "[" } - word.count { $0 == "]" }
    }
    return elements
  }

  private static func wrapped(_ elements: [String], first: String, width: Int) -> String {
    var lines = [first + (elements.first ?? "")]
    for element in elements.dropFirst() {
      let line = "\(lines[lines.count - 1]) \(element)"
      if line.displayWidth <= width { lines[lines.count - 1] = line } else { lines.append("         \(element)") }
    }
    return lines.joined(separator: "\n")
  }
}
