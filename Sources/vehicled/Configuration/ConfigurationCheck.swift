// Checks a TOML tree against the known keys and converts it to a configuration. All problems are collected; the result is valid only if
// there are none.

import ConfigurationFiles
import Logging
import Protocols
import ServiceRuntime

struct ConfigurationCheck: TableCheck {
  var problems: [ConfigurationProblem] = []
  let kinds: [Kind]
  /// The files of each folder, such as `signals.d`, with subsections that devices of a kind share.
  var shared: [String: [TOML.Table]] = [:]
  /// The sections in these files, by kind and section.
  var sharedSections: [String: [SharedSection]] = [:]
  /// The problems of shared sections that were reported, so that each is reported once and not for every device.
  var reported: Set<String> = []
  /// The last device that uses each link, and whether it is the only one that can.
  private var linkOwners: [String: (device: String, isExclusive: Bool)] = [:]
  /// The settings of each link that several devices can use, by link and key, with the first device that has them.
  private var linkSettings: [String: (device: String, value: Value)] = [:]
  /// The properties of each device whose protocol state machine could be created.
  private var properties: [String: [String]] = [:]
  /// The access lists of each device that sets any.
  private var access: [String: Configuration.AccessLists] = [:]
  /// Whether every file could be read. If not, a missing key is not reported: it may be in a file that could not be read.
  private let isComplete: Bool

  init(kinds: [Kind], isComplete: Bool) {
    self.kinds = kinds
    self.isComplete = isComplete
  }

  mutating func configuration(_ root: TOML.Table) -> Configuration {
    var result = Configuration()
    let folders = reportMisplaced(in: root)
    rejectUnknown(in: root, known: Configuration.generalKeys.map(\.name), sections: ["control", "device"] + folders)
    if case .string(let level) = value("log-level", of: Configuration.generalKeys, in: root) {
      result.logLevel = Logger.Level(rawValue: level)
    }
    if let entry = root["control"], let table = section(entry, form: "[control]") { result.control = control(table) }
    let devices = root["device"].flatMap { section($0, form: "[device.NAME]") } ?? TOML.Table()
    readShared(for: devices)
    result.devices = devices.entries.compactMap { device($0) }
    result.control.devices = access
    checkReferences(in: devices, of: result.devices)
    checkUnused()
    return result
  }

  private mutating func control(_ table: TOML.Table) -> Configuration.Control {
    var result = Configuration.Control()
    let keys = Configuration.controlKeys
    rejectUnknown(in: table, known: keys.map(\.name))
    if case .string(let path) = value("socket", of: keys, in: table), let entry = table["socket"] {
      if !path.hasPrefix("/") || path.utf8.count > 107 || path.utf8.contains(0) {
        report(
          entry.value.location,
          "socket: \(quoted(path)) is not an absolute path of at most 107 bytes; write one, as in /run/vehicled/io.vehicled")
      }
      result.socket = path
    }
    readLists(of: table, &result.lists)
    result.usesPolkit = value("authorization", of: keys, in: table) == .string("polkit")
    return result
  }

  /// Reads the lists that are set.
  private mutating func readLists(of table: TOML.Table, _ lists: inout Configuration.AccessLists) {
    let observe = names("observe", of: "group", in: table)
    let control = names("control", of: "group", in: table)
    let drive = names("drive", of: "group", in: table)
    lists.observe = observe ?? lists.observe
    lists.control = control ?? lists.control
    lists.drive = drive ?? lists.drive
    lists.optionalGroups.formIntersection((observe == nil ? lists.observe : []) + (control == nil ? lists.control : []))
    lists.optionalGroups.subtract((observe ?? []) + (control ?? []) + (drive ?? []))
    if let users = names("observe-users", of: "user", in: table) { lists.observeUsers = users }
    if let users = names("control-users", of: "user", in: table) { lists.controlUsers = users }
    if let users = names("drive-users", of: "user", in: table) { lists.driveUsers = users }
    lists.limitsDriving = table["drive"] != nil || table["drive-users"] != nil
  }

  private mutating func names(_ key: String, of what: String, in table: TOML.Table) -> [String]? {
    guard case .list(let names) = value(key, of: Configuration.deviceAccessKeys, in: table), let entry = table[key] else { return nil }
    for name in names where name.isEmpty || name.unicodeScalars.contains(where: { $0.properties.isWhitespace || $0.value < 0x20 }) {
      report(entry.value.location, "\(key): \(quoted(name)) is not the name of a \(what); write names without spaces, as in [\"vehicled\"]")
    }
    return names
  }

  private mutating func device(_ entry: TOML.Entry) -> Configuration.Device? {
    guard let table = section(entry, form: "[device.NAME]") else { return nil }
    if !isDeviceName(entry.key) {
      report(
        entry.location,
        "invalid device name \(quoted(entry.key)); use at most 32 lower-case letters, digits and dashes, beginning with a letter")
    }
    let before = problems.count
    var lists = Configuration.AccessLists()
    readLists(of: table, &lists)
    if lists != Configuration.AccessLists() { access[entry.key] = lists }
    let record = value("record", of: Configuration.deviceKeys, in: table) == .bool(true)
    guard let kind = kind(of: table, header: entry.value.location) else { return nil }
    rejectUnknown(in: table, known: kind.keys, sections: kind.sections.map(\.name), of: "kind \(kind.name)")
    var device = Configuration.Device(name: entry.key, kind: kind.name, links: [:], options: [:], record: record)
    let sections = kind.sections.map { section in (section, subsections(section, of: entry.key, kind, in: table)) }
    for (section, named) in sections where !named.isEmpty || table[section.name] != nil {
      device.sections[section.name] = named.map(\.subsection)
    }
    for role in kind.links {
      guard let url = link(role, of: kind, in: table, header: entry.value.location) else { continue }
      device.links[role.name] = url
      if let id = url.canonicalID, let owner = linkOwners.updateValue((entry.key, url.isExclusive), forKey: id),
        owner.isExclusive || url.isExclusive
      {
        report(
          table[role.key]?.value.location ?? entry.value.location,
          "\(role.key): devices \(owner.device) and \(printable(entry.key, limit: 32)) have the same link; \(Self.remedy(forShared: url))"
        )
      }
    }
    for option in kind.options { device.options[option.name] = value(option.name, of: kind.options, in: table) ?? option.defaultValue }
    for option in kind.options where option.describesLink { check(option, of: device, in: table) }
    for secret in kind.secrets { device.secrets[secret.name] = self.secret(secret, in: table) }
    let setup = device.setup
    let rejected = sections.filter { section, named in !check(named, section, setup) }
    guard problems.count == before, rejected.isEmpty else { return nil }
    do throws(OptionError) {
      properties[device.name] = try kind.make(device.setup).schema.properties.map(\.name)
    } catch {
      report(error, in: table, at: entry.value.location)
    }
    return device
  }

  private static func remedy(forShared url: LinkURL) -> String {
    let remedy = "give each device its own"
    return url.scheme == "slcan" ? "\(remedy), or use a can: link, which devices can share" : remedy
  }

  /// Reports a setting of a link that is not the same as in an earlier device on the same link. Another option can imply it.
  private mutating func check(_ option: Option, of device: Configuration.Device, in table: TOML.Table) {
    let implying = option.implication.flatMap { table[$0.option] }
    let implied = option.implication.flatMap { implication in
      device.options[implication.option].flatMap { implication.values[$0.text] }
    }
    guard let entry = table[option.name] ?? implying, let value = device.options[option.name] ?? implied else { return }
    for url in device.links.values {
      let key = "\(url.canonicalID ?? "\(url)") \(option.name)"
      let earlier = linkSettings[key] ?? (device.name, value)
      linkSettings[key] = earlier
      guard earlier.value != value else { continue }
      report(
        entry.value.location,
        "\(option.name): devices \(earlier.device) and \(device.name) share \(url), with \(earlier.value.text) and \(value.text); "
          + "set the same value in both")
    }
  }

  private mutating func secret(_ secret: Secret, in table: TOML.Table) -> SecretBytes? {
    guard let entry = table[secret.name], case .string(let name) = accept(entry, Option(secret.name, ValueRule(.string), help: "")) else {
      return nil
    }
    do throws(ValueError) {
      return try SecretFile.read(name)
    } catch {
      report(entry.value.location, "\(secret.name): \(printable(error.description))")
      return nil
    }
  }

  /// Reports references to devices and properties that do not exist.
  private mutating func checkReferences(in table: TOML.Table, of devices: [Configuration.Device]) {
    for device in devices {
      guard let kind = kinds.first(where: { $0.name == device.kind }), let entry = table[device.name],
        case .table(let keys) = entry.value.content
      else { continue }
      for option in kind.options {
        guard let reference = option.reference, let location = keys[option.name]?.value.location else { continue }
        let problems: [String?]
        switch (reference, device.options[option.name]) {
        case (.properties, .list(let references)?): problems = references.map { problem(with: $0, for: device.name) }
        case (.device(let required), .string(let other)?): problems = [problem(withDevice: other, with: required, for: device.name)]
        default: problems = []
        }
        var reported: Set<String> = []
        for problem in problems.compactMap(\.self) where reported.insert(problem).inserted {
          report(location, "\(option.name): \(problem)")
        }
      }
    }
  }

  private func problem(with reference: String, for device: String) -> String? {
    let parts = reference.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
      return "\(quoted(reference)) is not of the form DEVICE.PROPERTY; write it as in phone.steps"
    }
    guard parts[0] != device, let known = properties[parts[0]] else { return problem(withDevice: parts[0], for: device) }
    if known.contains(parts[1]) { return nil }
    return "device \(parts[0]) has no property \(quoted(parts[1])); \(suggestion(for: parts[1], among: known))"
  }

  private func problem(withDevice name: String, with required: [String] = [], for device: String) -> String? {
    if name == device { return "\(quoted(name)) is this device itself; use another device" }
    if let known = properties[name] {
      let missing = required.first { !known.contains($0) }
      return missing.map { "device \(name) has no \($0); use a device with \(required.joined(separator: ", "))" }
    }
    // If there are other problems, the device may exist but be invalid, which has been reported.
    if !isComplete || !problems.isEmpty { return nil }
    let others = properties.keys.filter { $0 != device }.sorted()
    let remedy = others.isEmpty ? "add a section [device.\(printable(name, limit: 32))]" : suggestion(for: name, among: others)
    return "unknown device \(quoted(name)); \(remedy)"
  }

  private mutating func kind(of table: TOML.Table, header: SourceLocation) -> Kind? {
    let names = kinds.map(\.name)
    guard let entry = table["kind"] else {
      if isComplete {
        report(header, "kind is missing; add kind = \"\(names.first ?? "")\" (known kinds: \(names.joined(separator: ", ")))")
      }
      return nil
    }
    guard case .string(let name) = value("kind", of: Configuration.deviceKeys, in: table) else { return nil }
    if let kind = kinds.first(where: { $0.name == name }) { return kind }
    let remedy = Renames.kind(name).map { "it has been renamed to \($0)" } ?? suggestion(for: name, among: names)
    report(entry.value.location, "unknown kind \(quoted(name)); \(remedy)")
    return nil
  }

  private mutating func link(_ role: LinkRole, of kind: Kind, in table: TOML.Table, header: SourceLocation) -> LinkURL? {
    guard let entry = table[role.key] else {
      if role.isRequired && isComplete { report(header, "\(role.key) is missing; add \(role.key) = \(Self.examples(for: role))") }
      return nil
    }
    guard case .string(let text) = accept(entry, Option(role.key, ValueRule(.string), help: "")) else { return nil }
    do throws(LinkURLError) {
      let url = try LinkURL(text)
      if url.scheme == "replay" || role.schemes.contains(url.scheme) { return url }
      let schemes = (role.schemes + ["replay"]).map { $0 + ":" }.joined(separator: ", ")
      report(entry.value.location(at: 0), "\(role.key): kind \(kind.name) does not support \(url.scheme): links; use one of \(schemes)")
    } catch {
      report(entry.value.location(at: error.offset), "\(role.key): \(error.description)")
    }
    return nil
  }

  /// Example links that can be pasted. A TCP link is shown only if the role supports no other, because the user must look up its address.
  private static func examples(for role: LinkRole) -> String {
    if let example = role.example { return "\"\(example)\"" }
    let schemes = role.schemes == ["tcp"] ? role.schemes : role.schemes.filter { $0 != "tcp" }
    let links = schemes.compactMap { scheme in
      switch scheme {
      case "serial": "serial:/dev/ttyUSB0"
      case "tcp": "tcp:192.168.0.10:35000"
      // The longest of the known names is the most specific.
      case "ble": "ble:\(role.gatt?.names.max { $0.count < $1.count } ?? "auto")"
      default: nil
      }
    }
    return links.map { "\"\($0)\"" }.joined(separator: " or ")
  }
}
