// The checked configuration of the server, as a plain value. WebKeys.swift lists the keys.

import ConfigurationFiles
import Glibc
import Logging
import Protocols
import ServiceRuntime
import Varlink

struct WebConfiguration {
  static let defaultPath = "/etc/vehicled/web.toml"
  /// The page that was installed with this program: in ../share/vehicled/web, as seen from its directory.
  static var installedFiles: String {
    var path = [CChar](repeating: 0, count: 4096)
    let length = readlink("/proc/self/exe", &path, path.count)
    let program = String(decoding: path.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let prefix = program.split(separator: "/", omittingEmptySubsequences: false).dropLast(2)
    return (prefix + ["share/vehicled/web"]).joined(separator: "/")
  }

  /// `[token.NAME]`.
  struct TokenFile: Equatable {
    let name: String
    /// A path, or the name of a systemd credential.
    let file: String
    var rights = Rights()
  }

  /// `[metrics]`.
  struct Metrics: Equatable {
    let tokenFile: String
    var positions: [String] = []
  }

  var logLevel = Logger.Level.info
  var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8270)
  var origins: [Origin] = []
  var daemon = "/run/vehicled/io.vehicled"
  var history = HistoryContract.defaultSocket
  /// nil for the installed ones.
  var files: String?
  var tokens: [TokenFile] = []
  /// nil if there is no `/metrics`.
  var metrics: Metrics?

  /// Reads FILE, then FILE.d/*.toml.
  static func load(_ path: String) throws(ConfigurationError) -> WebConfiguration {
    var problems: [ConfigurationProblem] = []
    let root = ConfigurationFile.merged(path, examples, &problems)
    var check = WebCheck()
    let configuration = check.configuration(root)
    problems += check.problems
    guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    return configuration
  }
}

/// Checks a tree against the known keys.
struct WebCheck: TableCheck {
  var problems: [ConfigurationProblem] = []
  /// The keys of the section that is being read.
  private var options: [Option] = []

  mutating func configuration(_ root: TOML.Table) -> WebConfiguration {
    var result = WebConfiguration()
    rejectUnknown(in: root, known: WebConfiguration.generalKeys.map(\.name), sections: ["web", "token", "metrics"])
    if case .string(let level) = value("log-level", of: WebConfiguration.generalKeys, in: root) {
      result.logLevel = Logger.Level(rawValue: level) ?? result.logLevel
    }
    if let entry = root["web"], let table = section(entry, form: "[web]") { read(table, &result) }
    if let entry = root["token"], let table = section(entry, form: "[token.NAME]") {
      for entry in table.entries {
        guard let table = section(entry, form: "[token.\(printable(entry.key, limit: 40))]") else { continue }
        if let token = token(table, entry) { result.tokens.append(token) }
      }
    }
    if let entry = root["metrics"], let table = section(entry, form: "[metrics]") { result.metrics = metrics(table, entry.location) }
    return result
  }

  private mutating func read(_ table: TOML.Table, _ result: inout WebConfiguration) {
    options = WebConfiguration.webKeys
    rejectUnknown(in: table, known: options.map(\.name))
    if let listen = parsed("listen", in: table, ListenAddress.init) { result.listen = listen }
    for text in list("origins", in: table) ?? [] {
      do throws(ValueError) { result.origins.append(try Origin(text)) } catch {
        if let entry = table["origins"] { report(entry.value.location, "origins: \(error.description)") }
      }
    }
    if let path = path("daemon", in: table, limit: 107) { result.daemon = path }
    if let path = path("history", in: table, limit: 107) { result.history = path }
    if let path = path("files", in: table, limit: 4000) { result.files = path }
  }

  private mutating func token(_ table: TOML.Table, _ entry: TOML.Entry) -> WebConfiguration.TokenFile? {
    options = WebConfiguration.tokenKeys
    rejectUnknown(in: table, known: options.map(\.name))
    guard table["file"] != nil else {
      report(entry.location, "file is missing; add file = \"/PATH\", a file of mode 0600 with the token")
      return nil
    }
    guard let file = string("file", in: table) else { return nil }
    var rights = Rights(control: Set(list("control", in: table) ?? []))
    if case .bool(let flag) = value("kiosk", of: options, in: table) { rights.isKiosk = flag }
    return WebConfiguration.TokenFile(name: entry.key, file: file, rights: rights)
  }

  private mutating func metrics(_ table: TOML.Table, _ location: SourceLocation) -> WebConfiguration.Metrics? {
    options = WebConfiguration.metricsKeys
    rejectUnknown(in: table, known: options.map(\.name))
    guard table["token-file"] != nil else {
      report(location, "token-file is missing; add token-file = \"/PATH\", a file of mode 0600 with the bearer token")
      return nil
    }
    return string("token-file", in: table).map { .init(tokenFile: $0, positions: list("position", in: table) ?? []) }
  }

  private mutating func string(_ key: String, in table: TOML.Table) -> String? {
    guard case .string(let text) = value(key, of: options, in: table), let entry = table[key] else { return nil }
    guard text.isEmpty || text.utf8.contains(0) else { return text }
    report(entry.value.location, "\(key) is empty; specify a value, or remove the key")
    return nil
  }

  private mutating func list(_ key: String, in table: TOML.Table) -> [String]? {
    if case .list(let texts) = value(key, of: options, in: table) { texts } else { nil }
  }

  private mutating func parsed<T>(_ key: String, in table: TOML.Table, _ parse: (String) throws(ValueError) -> T) -> T? {
    guard let text = string(key, in: table), let entry = table[key] else { return nil }
    do throws(ValueError) { return try parse(text) } catch {
      report(entry.value.location, "\(key): \(error.description)")
      return nil
    }
  }

  private mutating func path(_ key: String, in table: TOML.Table, limit: Int) -> String? {
    parsed(key, in: table) { text throws(ValueError) in
      guard text.hasPrefix("/"), text.utf8.count <= limit else {
        throw ValueError("\(quoted(text)) is not an absolute path of at most \(limit) bytes")
      }
      return text
    }
  }
}
