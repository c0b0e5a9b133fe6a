// The checked configuration of the history, as a plain value. HistoryKeys.swift lists the keys.

import ConfigurationFiles
import Logging
import Observations
import Protocols
import ServiceRuntime
import Trips
import Varlink

struct HistoryConfiguration {
  static let defaultPath = "/etc/vehicled/history.toml"

  var logLevel = Logger.Level.info
  var socket = HistoryContract.defaultSocket
  /// The socket of the daemon.
  var daemon = "/run/vehicled/io.vehicled"
  /// The directory in which values are stored; nil for the default.
  var directory: String?
  var selection = Selection()
  /// The maximum age of values, in µs; nil for no limit.
  var keep: Int64?
  /// The maximum size, in bytes.
  var maxSize = 4_000_000_000
  var rules = PeriodRules()
  var observe = AccessList(groups: ["vehicled", "vehicled-observe"])
  var control = AccessList(groups: ["vehicled"])
  var alerts: [Alert] = []

  /// A configured alert.
  struct Alert: Equatable {
    var name: String
    var condition: AlertCondition
    /// Whether a raised alert starts `vehicled-alert@NAME.service`.
    var runsProgram = false
  }

  /// Reads FILE, then FILE.d/*.toml. If none exists, all keys have their defaults, unless the file `isRequired`.
  static func load(_ path: String = defaultPath, isRequired: Bool = true) throws(ConfigurationError) -> HistoryConfiguration {
    var problems: [ConfigurationProblem] = []
    let root = ConfigurationFile.merged(path, examples, isRequired: isRequired, &problems)
    var check = HistoryCheck()
    let configuration = check.configuration(root)
    problems += check.problems
    guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    return configuration
  }
}

/// Checks a tree against the known keys.
struct HistoryCheck: TableCheck {
  var problems: [ConfigurationProblem] = []

  mutating func configuration(_ root: TOML.Table) -> HistoryConfiguration {
    var result = HistoryConfiguration()
    rejectUnknown(in: root, known: HistoryConfiguration.generalKeys.map(\.name), sections: ["history", "alert"])
    if case .string(let level) = value("log-level", of: HistoryConfiguration.generalKeys, in: root) {
      result.logLevel = Logger.Level(rawValue: level) ?? result.logLevel
    }
    if let entry = root["history"], let table = section(entry, form: "[history]") { read(table, &result) }
    if let entry = root["alert"], let table = section(entry, form: "[alert.NAME]") {
      result.alerts = table.entries.compactMap { alert($0) }
    }
    return result
  }

  private mutating func read(_ table: TOML.Table, _ result: inout HistoryConfiguration) {
    let keys = HistoryConfiguration.historyKeys
    rejectUnknown(in: table, known: keys.map(\.name))
    if let path = path("socket", in: table, limit: 107, example: HistoryContract.defaultSocket) { result.socket = path }
    if let path = path("daemon", in: table, limit: 107, example: "/run/vehicled/io.vehicled") { result.daemon = path }
    result.directory = path("directory", in: table, limit: 4000, example: "/var/lib/vehicled-history")
    result.selection.included = patterns("record", in: table)
    result.selection.excluded = patterns("exclude", in: table)
    if let days = number("keep", in: table) { result.keep = Int64(days * 86_400e6) }
    if let megabytes = number("max-size", in: table) { result.maxSize = Int(megabytes * 1e6) }
    for rule in HistoryConfiguration.ruleKeys {
      if let value = number(rule.option.name, in: table) { rule.set(&result.rules, value) }
    }
    result.observe = list("observe", "observe-users", result.observe, in: table)
    result.control = list("control", "control-users", result.control, in: table)
  }

  private mutating func number(_ key: String, in table: TOML.Table) -> Double? {
    value(key, of: HistoryConfiguration.historyKeys, in: table)?.number
  }

  private mutating func path(_ key: String, in table: TOML.Table, limit: Int, example: String) -> String? {
    guard case .string(let path) = value(key, of: HistoryConfiguration.historyKeys, in: table), let entry = table[key] else { return nil }
    if !path.hasPrefix("/") || path.utf8.count > limit || path.utf8.contains(0) {
      report(
        entry.value.location, "\(key): \(quoted(path)) is not an absolute path of at most \(limit) bytes; use one such as \(example)")
    }
    return path
  }

  private mutating func patterns(_ key: String, in table: TOML.Table) -> [ReferencePattern] {
    guard case .list(let texts) = value(key, of: HistoryConfiguration.historyKeys, in: table), let entry = table[key] else { return [] }
    for text in texts where text.isEmpty || !text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-.*?[]!".contains($0)) }) {
      report(
        entry.value.location,
        "\(key): \(quoted(text)) is not a name or pattern of devices and properties; use one such as \"ev\", \"ev.speed\" or \"*.cell-*\"")
    }
    return texts.map { ReferencePattern($0) }
  }

  private mutating func list(_ groups: String, _ users: String, _ list: AccessList, in table: TOML.Table) -> AccessList {
    AccessList(groups: names(groups, of: "group", in: table) ?? list.groups, users: names(users, of: "user", in: table) ?? list.users)
  }

  private mutating func names(_ key: String, of what: String, in table: TOML.Table) -> [String]? {
    guard case .list(let names) = value(key, of: HistoryConfiguration.historyKeys, in: table), let entry = table[key] else { return nil }
    for name in names where name.isEmpty || name.unicodeScalars.contains(where: { $0.properties.isWhitespace || $0.value < 0x20 }) {
      report(entry.value.location, "\(key): \(quoted(name)) is not the name of a \(what); use names without spaces, such as [\"vehicled\"]")
    }
    return names
  }

  private mutating func alert(_ entry: TOML.Entry) -> HistoryConfiguration.Alert? {
    guard let table = section(entry, form: "[alert.NAME]") else { return nil }
    let keys = HistoryConfiguration.alertKeys
    if !isDeviceName(entry.key) {
      report(
        entry.location,
        "invalid alert name \(quoted(entry.key)); use at most 32 lower-case letters, digits and dashes, beginning with a letter")
    }
    rejectUnknown(in: table, known: keys.map(\.name), of: "alert \(printable(entry.key, limit: 32))")
    let runsProgram = value("run-program", of: keys, in: table) == .bool(true)
    guard let node = table["condition"]?.value else {
      report(entry.value.location, "condition is missing; add condition = \"state-of-charge >= 80\"")
      return nil
    }
    guard case .string(let text) = value("condition", of: keys, in: table) else { return nil }
    do throws(AlertSyntaxError) {
      return HistoryConfiguration.Alert(name: entry.key, condition: try AlertCondition(text), runsProgram: runsProgram)
    } catch {
      report(node.location(at: error.offset), "condition: \(error.message)")
      return nil
    }
  }
}
