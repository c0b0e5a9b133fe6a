// The checked configuration of the bridge, as a plain value. MQTTKeys.swift lists the keys.

import ConfigurationFiles
import Logging
import Observations
import Protocols
import ServiceRuntime

struct MQTTConfiguration {
  static let defaultPath = "/etc/vehicled/mqtt.toml"
  /// The kinds whose values are published by default: not positions and health values, which are private.
  static let kinds: Set<String> = Selection.vehicles.union(["mirror", "toy", "weather"])
  /// The values of these kinds that leave this computer only if `publish` lists them: the VIN, texts of a bus, which can contain it, the
  /// URL of a car's camera, which can contain a password, and the health values that a mirror shows.
  static let personal = [
    "*.vin", "*.last-bad-reply", "*.web-page", "*.sent-heart-rate", "*.sent-active-energy", "*.sent-steps", "*.sent-distance",
  ].map { ReferencePattern($0) }

  var logLevel = Logger.Level.info
  var broker = BrokerOptions()
  /// nil for a client ID made of the host name.
  var clientID: String?
  /// A path, or the name of a systemd credential.
  var passwordFile: String?
  var daemon = "/run/vehicled/io.vehicled"
  /// The directory of the send queue; nil for the default.
  var directory: String?
  var prefix = "vehicled"
  /// nil for the host name.
  var host: String?
  var selection = Selection(kinds: kinds, personal: personal)
  var control: [ReferencePattern] = []
  var timing = PropertyState.Timing()
  var names = ValuePublisher.Names()
  /// The discovery prefix of Home Assistant; nil if devices are not announced.
  var discoveryPrefix: String? = "homeassistant"
  /// The maximum age in µs and size in bytes of the send queue.
  var queueAge: Int64 = 30 * 86_400_000_000
  var queueSize = 256_000_000
  /// nil if nothing is sent to a fleet.
  var fleet: FleetConfiguration?

  /// Reads FILE, then FILE.d/*.toml. If none exists, all keys have their defaults, unless the file `isRequired`.
  static func load(_ path: String = defaultPath, isRequired: Bool = true) throws(ConfigurationError) -> MQTTConfiguration {
    var problems: [ConfigurationProblem] = []
    let root = ConfigurationFile.merged(path, examples, isRequired: isRequired, &problems)
    var check = MQTTCheck()
    let configuration = check.configuration(root)
    problems += check.problems
    guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    return configuration
  }
}

/// Checks a tree against the known keys.
struct MQTTCheck: TableCheck {
  var problems: [ConfigurationProblem] = []
  /// The keys of the section that is being read.
  private var options: [Option] = []

  mutating func configuration(_ root: TOML.Table) -> MQTTConfiguration {
    var result = MQTTConfiguration()
    rejectUnknown(in: root, known: MQTTConfiguration.generalKeys.map(\.name), sections: ["mqtt", "fleet"])
    if case .string(let level) = value("log-level", of: MQTTConfiguration.generalKeys, in: root) {
      result.logLevel = Logger.Level(rawValue: level) ?? result.logLevel
    }
    if let entry = root["mqtt"], let table = section(entry, form: "[mqtt]") { read(table, &result) }
    if let entry = root["fleet"], let table = section(entry, form: "[fleet]") { result.fleet = fleet(table, entry.location) }
    return result
  }

  private mutating func fleet(_ table: TOML.Table, _ location: SourceLocation) -> FleetConfiguration? {
    options = MQTTConfiguration.fleetKeys
    rejectUnknown(in: table, known: options.map(\.name))
    guard table["tenant"] != nil else {
      report(location, "tenant is missing; add tenant = \"NAME\", the owner of the vehicles")
      return nil
    }
    guard let tenant = level("tenant", in: table) else { return nil }
    var result = FleetConfiguration(tenant: tenant, vehicle: level("vehicle", in: table))
    if let patterns = patterns("publish", in: table) { result.selection.included = patterns }
    if let patterns = patterns("exclude", in: table) { result.selection.excluded = patterns }
    if let seconds = number("batch", in: table) { result.interval = Int64(seconds * 1e9) }
    return result
  }

  private mutating func read(_ table: TOML.Table, _ result: inout MQTTConfiguration) {
    options = MQTTConfiguration.mqttKeys
    rejectUnknown(in: table, known: options.map(\.name))
    broker(table, &result)
    if let path = path("daemon", in: table, limit: 107) { result.daemon = path }
    result.directory = path("directory", in: table, limit: 4000)
    if let prefix = level("prefix", in: table, separators: true) {
      result.prefix = prefix
      if Topics.isBatch(prefix + "/"), let entry = table["prefix"] {
        report(entry.value.location, "prefix: fleet/v1 is reserved for batches; choose another one")
      }
    }
    result.host = level("host", in: table)
    if let patterns = patterns("publish", in: table) { result.selection.included = patterns }
    if let patterns = patterns("exclude", in: table) { result.selection.excluded = patterns }
    result.control = patterns("control", in: table) ?? []
    for pattern in result.control where CommandReader.forbidden.contains(where: { pattern.text.hasSuffix(".\($0)") }) {
      guard let entry = table["control"] else { continue }
      report(entry.value.location, "control: \(quoted(pattern.text)) is not available by MQTT; remove it")
    }
    if let seconds = number("interval", in: table) { result.timing.interval = Int64(seconds * 1e9) }
    if let seconds = number("refresh", in: table) { result.timing.refresh = Int64(seconds * 1e9) }
    result.timing.refresh = max(result.timing.refresh, result.timing.interval)
    if let prefix = level("discovery-prefix", in: table, separators: true) { result.discoveryPrefix = prefix }
    if boolean("home-assistant", in: table) == false { result.discoveryPrefix = nil }
    if string("names", in: table) == "vss" { result.names = ValuePublisher.Names(vss: true, own: result.discoveryPrefix != nil) }
    if let days = number("queue-age", in: table) { result.queueAge = Int64(days * 86_400e6) }
    if let megabytes = number("queue-size", in: table) { result.queueSize = Int(megabytes * 1e6) }
  }

  private mutating func broker(_ table: TOML.Table, _ result: inout MQTTConfiguration) {
    if let text = string("broker", in: table), let entry = table["broker"] {
      do throws(ValueError) {
        let url = try BrokerURL(text)
        (result.broker.scheme, result.broker.host, result.broker.port) = (url.scheme, url.host, url.port)
      } catch {
        report(entry.value.location, "broker: \(error.description)")
      }
    }
    result.clientID = string("client-id", in: table)
    result.broker.user = string("user", in: table)
    result.passwordFile = string("password-file", in: table)
    result.broker.authorities = path("ca-file", in: table, limit: 4000)
    result.broker.certificate = path("certificate", in: table, limit: 4000)
    result.broker.key = path("key", in: table, limit: 4000)
    if (result.broker.certificate == nil) != (result.broker.key == nil), let entry = table["certificate"] ?? table["key"] {
      report(entry.location, "certificate and key belong together; specify both, or neither")
    }
    if result.passwordFile != nil, result.broker.user == nil, let entry = table["password-file"] {
      report(entry.location, "password-file needs a user; add user = \"NAME\"")
    }
  }

  private mutating func string(_ key: String, in table: TOML.Table) -> String? {
    guard case .string(let text) = value(key, of: options, in: table), let entry = table[key] else { return nil }
    if text.isEmpty || text.utf8.contains(0) { report(entry.value.location, "\(key) is empty; specify a value, or remove the key") }
    return text
  }

  private mutating func number(_ key: String, in table: TOML.Table) -> Double? {
    value(key, of: options, in: table)?.number
  }

  private mutating func boolean(_ key: String, in table: TOML.Table) -> Bool? {
    if case .bool(let value) = value(key, of: options, in: table) { value } else { nil }
  }

  private mutating func path(_ key: String, in table: TOML.Table, limit: Int) -> String? {
    guard let path = string(key, in: table), let entry = table[key] else { return nil }
    if !path.hasPrefix("/") || path.utf8.count > limit {
      report(entry.value.location, "\(key): \(quoted(path)) is not an absolute path of at most \(limit) bytes")
    }
    return path
  }

  /// Levels of a topic; only one unless `separators` are allowed.
  private mutating func level(_ key: String, in table: TOML.Table, separators: Bool = false) -> String? {
    guard let text = string(key, in: table), let entry = table[key] else { return nil }
    let isValid = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"#+$".utf8.contains($0) && (separators || $0 != UInt8(ascii: "/")) }
    if !isValid || text.hasPrefix("/") || text.hasSuffix("/") || text.utf8.count > 100 {
      report(entry.value.location, "\(key): \(quoted(text)) cannot be part of a topic; use letters, digits and dashes")
    }
    return text
  }

  private mutating func patterns(_ key: String, in table: TOML.Table) -> [ReferencePattern]? {
    guard case .list(let texts) = value(key, of: options, in: table), let entry = table[key] else { return nil }
    for text in texts {
      let parts = text.split(separator: ".", omittingEmptySubsequences: false)
      let isValid = text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-.*?[]!".contains($0)) }
      if isValid, parts.count <= 2, !parts.contains("") { continue }
      report(
        entry.value.location,
        "\(key): \(quoted(text)) is not a name or pattern of devices and properties; use one such as \"ev\", \"mirror.led\" or \"*.cell-*\""
      )
    }
    return texts.map { ReferencePattern($0) }
  }
}
