// Completes a command line: finds the words that may follow, from the declarations of the commands. The shells' scripts request these words
// at every Tab, so the scripts contain no names of commands.

import ArgumentParser
import Protocols

struct Completion {
  /// The argument by which the scripts request a completion. It precedes the words of the line up to the cursor, without the program.
  static let request = "---complete"
  /// The line that stands for the names of files, which the shell completes.
  static let files = ":files"

  /// The names of the command that the words before the cursor select: `["camera", "record"]`.
  private var path: [String] = []
  /// The declaration of this command.
  private var command: JSON
  /// The option whose value is at the cursor.
  private var option: JSON?
  /// The number of positional arguments before the cursor.
  private var positionals = 0
  /// Whether `--` precedes the cursor, so that no options follow.
  private var endsOptions = false
  /// Whether the command is `help`, so that only commands follow.
  private var isHelp = false
  private let words: [String]

  /// The lines for the shell: each a word, or a word, a tab and its description.
  static func lines(_ words: [String]) -> [String] {
    guard let root = JSON(VehicleCtl._dumpHelp())?["command"] else { return [] }
    return Completion(words, root).candidates
  }

  private init(_ words: [String], _ root: JSON) {
    (self.words, command) = (words, root)
    // bash splits --socket=PATH at the equals sign.
    for word in words.dropLast() where word != "=" { read(word, root) }
  }

  private mutating func read(_ word: String, _ root: JSON) {
    if option != nil {
      option = nil
    } else if word == "--" {
      endsOptions = true
    } else if word.hasPrefix("-"), !endsOptions {
      option = command.arguments.first { $0.kind == "option" && $0.names.contains(word) }
    } else if positionals == 0, path.isEmpty, word == "help" {
      isHelp = true
    } else if positionals == 0, let inner = command.subcommands.first(where: { $0.names.contains(word) }) {
      path.append(word)
      command = inner
    } else {
      positionals += 1
    }
  }

  private var candidates: [String] {
    let current = words.last == "=" ? "" : words.last ?? ""
    let all: [String]
    if let option {
      all = values(of: option, named: option.names.first ?? "")
    } else if current.hasPrefix("-"), !endsOptions, !isHelp {
      all = options
    } else {
      let commands = positionals == 0 ? command.subcommands.map { line($0["commandName"]?.string ?? "", $0) } : []
      all = commands + (isHelp ? [] : positionalValues)
    }
    var seen: Set<String> = []
    return all.filter { line in
      let word = String(line.prefix { $0 != "\t" })
      return (word.hasPrefix(current) || word == Self.files) && seen.insert(word).inserted
    }
  }

  /// The options of the command that may still follow, under each of their names.
  private var options: [String] {
    command.arguments.filter { argument in
      guard argument.kind != "positional", argument["shouldDisplay"] != .bool(false) else { return false }
      return argument["isRepeating"] == .bool(true) || !argument.names.contains { words.dropLast().contains($0) }
    }.flatMap { argument in argument.names.map { line($0, argument) } }
  }

  private var positionalValues: [String] {
    let declared = command.arguments.filter { $0.kind == "positional" }
    guard let last = declared.indices.last, positionals <= last || declared[last]["isRepeating"] == .bool(true) else { return [] }
    let index = min(positionals, last)
    return declared[index]["shouldDisplay"] == .bool(false) ? [] : values(of: declared[index], named: "positional@\(index)")
  }

  /// The values of an option or a positional argument.
  private func values(of argument: JSON, named name: String) -> [String] {
    let kind = argument["completionKind"]
    if case .array(let values)? = kind?["list"]?["values"] { return values.compactMap(\.string) }
    if kind?["file"] != nil || kind?["directory"] != nil { return [Self.files] }
    guard kind?["custom"] != nil else { return [] }
    do {
      _ = try VehicleCtl.parseAsRoot(
        ["---completion"] + path + ["--", name, "\(words.count)", "\(words.last?.utf8.count ?? 0)", "vehiclectl"] + words)
    } catch {
      return VehicleCtl.fullMessage(for: error).split(separator: "\n").map(String.init)
    }
    return []
  }

  private func line(_ word: String, _ declaration: JSON) -> String {
    declaration["abstract"]?.string.map { "\(word)\t\(Output.oneLine($0))" } ?? word
  }
}

/// A command or an argument as ArgumentParser describes it.
extension JSON {
  fileprivate var subcommands: [JSON] { elements("subcommands").filter { $0["shouldDisplay"] != .bool(false) } }
  fileprivate var arguments: [JSON] { elements("arguments") }
  /// `flag`, `option` or `positional`.
  fileprivate var kind: String? { self["kind"]?.string }

  /// The name and the aliases of a command, or the names of an option with their dashes, the long ones first.
  fileprivate var names: [String] {
    if let name = self["commandName"]?.string { return [name] + elements("aliases").compactMap(\.string) }
    let names = elements("names").compactMap { name in name["name"]?.string.map { ($0, isLong: name["kind"]?.string == "long") } }
    return names.filter(\.isLong).map { "--\($0.0)" } + names.filter { !$0.isLong }.map { "-\($0.0)" }
  }

  private func elements(_ key: String) -> [JSON] {
    if case .array(let elements)? = self[key] { elements } else { [] }
  }
}
