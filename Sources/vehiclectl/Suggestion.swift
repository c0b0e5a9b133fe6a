// Finds the nearest existing name for an unknown word on the command line ("did you mean"). No I/O.

import ArgumentParser
import Protocols
import Varlink

extension Failure {
  /// Whether a name in the command line does not exist, so that `suggesting` may find the intended one.
  var isUnknownName: Bool {
    switch self {
    case .rejected(.noSuchDevice), .rejected(.noSuchProperty), .rejected(.noSuchAction), .noSuchAction: true
    default: false
    }
  }

  /// The failure with the nearest name that exists, if any. `words` is the command line without its options.
  func suggesting(from schemas: [Contract.Schema], words: [String]) -> Failure {
    switch self {
    case .rejected(.noSuchDevice(let word)) where words == [word]:
      return CommandNames.unknownWord(word, devices: schemas.map(\.device))
    case .rejected(.noSuchDevice(let device)):
      let commands = CommandNames.alternatives(to: device, in: words)
      guard let best = nearest(to: device, among: schemas.map(\.device) + commands) else { return self }
      return commands.contains(best)
        ? CommandNames.unknown(words, suggestion: best) : .unknownReference(.noSuchDevice(device: device), suggestion: best)
    case .rejected(.noSuchProperty(let device, let property)):
      let best = Self.suggestion(for: property, of: device, in: schemas) { $0.properties.map(\.name) }
      return .unknownReference(.noSuchProperty(device: device, property: property), suggestion: best)
    case .rejected(.noSuchAction(let device, let action)):
      let best = Self.suggestion(for: action, of: device, in: schemas) { $0.actions.map(\.name) }
      return .unknownReference(.noSuchAction(device: device, action: action), suggestion: best)
    case .noSuchAction(let action, _):
      return .noSuchAction(action, suggestion: Self.suggestion(for: action, of: nil, in: schemas) { $0.actions.map(\.name) })
    default: return self
    }
  }

  /// The nearest name on the device, as DEVICE.NAME; without a device, the nearest name on any device, or the nearest device name.
  private static func suggestion(
    for name: String, of device: String?, in schemas: [Contract.Schema], _ names: (Contract.Schema) -> [String]
  ) -> String? {
    guard let device else { return nearest(to: name, among: schemas.flatMap(names) + schemas.map(\.device)) }
    return nearest(to: name, among: schemas.filter { $0.device == device }.flatMap(names)).map { "\(device).\($0)" }
  }
}

/// The names of commands, for a word that is not one of them.
enum CommandNames {
  private static let all = VehicleCtl.configuration.subcommands
  private static let names = all.flatMap { $0.configuration.names } + ["help"]

  private static func inner(_ command: String) -> [String] {
    all.first { $0.configuration.names.contains(command) }?.configuration.subcommands.flatMap { $0.configuration.names } ?? []
  }

  /// The subcommands that the word may mean, if it follows a command that has subcommands.
  static func alternatives(to word: String, in words: [String]) -> [String] {
    guard words.count > 1, words[1] == word else { return [] }
    return inner(words[0])
  }

  /// The command at the start of a command line, followed by its subcommand, if any.
  static func existing(_ words: [String]) -> [String] {
    guard let first = words.first, all.contains(where: { $0.configuration.names.contains(first) }) else { return [] }
    return words.count > 1 && inner(first).contains(words[1]) ? [first, words[1]] : [first]
  }

  /// The failure for a command line of one word that is neither a command nor a device.
  static func unknownWord(_ word: String, devices: [String]) -> Failure {
    let suggestion = nearest(to: word, among: names + devices)
    let remedy = suggestion.map { "did you mean \($0)?" } ?? "list commands: vehiclectl --help; list devices: vehiclectl"
    return .usage("unknown command or device: \(word); \(remedy)")
  }

  /// The failure for a command line of one word while the names of devices are unknown, because no daemon is running; nil unless the word
  /// resembles a command.
  static func misspelt(_ words: [String]) -> Failure? {
    guard words.count == 1, let word = words.first, !names.contains(word), let command = nearest(to: word, among: names) else { return nil }
    return word.hasPrefix(command) ? nil : unknownWord(word, devices: [])
  }

  static func unknown(_ words: [String], suggestion: String?) -> Failure {
    let isInner = suggestion.map { inner(words[0]).contains($0) } ?? false
    let wrong = isInner ? words.prefix(2).joined(separator: " ") : words.first ?? ""
    let remedy = suggestion.map { "did you mean \(isInner ? "\(words[0]) " : "")\($0)?" } ?? "list commands: vehiclectl --help"
    return .usage("unknown command \"\(wrong)\"; \(remedy)")
  }

  /// The failure for a command line, or for the words after `help`, that names no existing command; nil if the commands exist. A single
  /// word is accepted, because it may be the name of a device.
  static func failure(_ words: [String], isHelp: Bool = false) -> Failure? {
    guard let first = words.first else { return nil }
    guard names.contains(first) else {
      return words.count > 1 || isHelp ? unknown(words, suggestion: nearest(to: first, among: names)) : nil
    }
    let inner = inner(first)
    guard words.count > 1, !inner.isEmpty, !inner.contains(words[1]), let best = nearest(to: words[1], among: inner) else { return nil }
    return unknown(words, suggestion: best)
  }
}
