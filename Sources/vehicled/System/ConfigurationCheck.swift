// Holds a TOML tree against the known keys and makes the configuration of it. It collects every problem instead of
// stopping at the first; what it returns counts only when there are none.

import Logging
import Protocols

struct ConfigurationCheck {
  private(set) var problems: [ConfigurationProblem] = []
  let kinds: [Kind]
  /// The files of the folders that kinds share their subsections in.
  var shared: [String: [TOML.Table]] = [:]
  /// What stands in them, by kind and section.
  var sharedSections: [String: [SharedSection]] = [:]
  /// Problems that more than one device has.
  var told: Set<String> = []
  /// Which device has which port.
  private var holders: [String: String] = [:]
  /// The properties of each device that has a machine.
  private var properties: [String: [String]] = [:]
  /// Every file could be read: what is not there is missing.
  private let complete: Bool

  init(kinds: [Kind], complete: Bool) {
    self.kinds = kinds
    self.complete = complete
  }

  mutating func configuration(_ root: TOML.Table) -> Configuration {
    var result = Configuration()
    let folders = misplaced(in: root)
    refuseUnknown(in: root, known: Configuration.generalKeys.map(\.name), sections: ["control", "device"] + folders)
    if case .string(let level) = value("log-level", of: Configuration.generalKeys, in: root) {
      result.logLevel = Logger.Level(rawValue: level)
    }
    if let entry = root["control"], let table = section(entry, form: "[control]") { result.control = control(table) }
    let devices = root["device"].flatMap { section($0, form: "[device.NAME]") } ?? TOML.Table()
    readShared(for: devices)
    result.devices = devices.entries.compactMap { device($0) }
    checkReferences(in: devices, of: result.devices)
    checkUnused()
    return result
  }

  private mutating func control(_ table: TOML.Table) -> Configuration.Control {
    var result = Configuration.Control()
    let keys = Configuration.controlKeys
    refuseUnknown(in: table, known: keys.map(\.name))
    if case .string(let path) = value("socket", of: keys, in: table), let entry = table["socket"] {
      if !path.hasPrefix("/") || path.utf8.count > 107 || path.utf8.contains(0) {
        let words = "socket: \(quoted(path)) is not an absolute path of at most 107 bytes; write one, as in /run/vehicled/io.vehicled"
        report(entry.value.place, words)
      }
      result.socket = path
    }
    if let groups = names("observe", of: "group", in: table) { result.observe = groups }
    if let groups = names("control", of: "group", in: table) { result.control = groups }
    if let users = names("observe-users", of: "user", in: table) { result.observeUsers = users }
    if let users = names("control-users", of: "user", in: table) { result.controlUsers = users }
    result.asksPolkit = value("authorization", of: keys, in: table) == .string("polkit")
    return result
  }

  private mutating func names(_ key: String, of what: String, in table: TOML.Table) -> [String]? {
    guard case .list(let names) = value(key, of: Configuration.controlKeys, in: table), let entry = table[key] else { return nil }
    for name in names where name.isEmpty || name.unicodeScalars.contains(where: { $0.properties.isWhitespace || $0.value < 0x20 }) {
      report(entry.value.place, "\(key): \(quoted(name)) is not the name of a \(what); list names, as in [\"vehicled\"]")
    }
    return names
  }

  private mutating func device(_ entry: TOML.Entry) -> Configuration.Device? {
    guard let table = section(entry, form: "[device.NAME]") else { return nil }
    if !isDeviceName(entry.key) {
      report(
        entry.place, "\(quoted(entry.key)) cannot name a device; use at most 32 lower-case letters, digits and dashes, a letter first")
    }
    let before = problems.count
    let record = value("record", of: Configuration.deviceKeys, in: table) == .bool(true)
    guard let kind = kind(of: table, header: entry.value.place) else { return nil }
    refuseUnknown(in: table, known: kind.keys, sections: kind.sections.map(\.name), of: "kind \(kind.name)")
    var device = Configuration.Device(name: entry.key, kind: kind.name, links: [:], options: [:], record: record)
    let sections = kind.sections.map { section in (section, subsections(section, of: entry.key, kind, in: table)) }
    for (section, named) in sections where !named.isEmpty || table[section.name] != nil {
      device.sections[section.name] = named.map(\.subsection)
    }
    for role in kind.links {
      guard let url = link(role, of: kind, in: table, header: entry.value.place) else { continue }
      device.links[role.name] = url
      if let port = url.exclusive, let holder = holders.updateValue(entry.key, forKey: port) {
        report(
          table[role.key]?.value.place ?? entry.value.place, "\(role.key): device \(holder) has this link already; give each device its own"
        )
      }
    }
    for option in kind.options { device.options[option.name] = value(option.name, of: kind.options, in: table) ?? option.fallback }
    for secret in kind.secrets { device.secrets[secret.name] = self.secret(secret, in: table) }
    let setup = device.setup
    let wrong = sections.filter { section, named in !check(named, section, setup) }
    guard problems.count == before, wrong.isEmpty else { return nil }
    do throws(OptionError) {
      properties[device.name] = try kind.make(device.setup).schema.properties.map(\.name)
    } catch {
      report(error, in: table, at: entry.value.place)
    }
    return device
  }

  private mutating func secret(_ secret: Secret, in table: TOML.Table) -> SecretBytes? {
    guard let entry = table[secret.name], case .string(let name) = accept(entry, Option(secret.name, ValueRule(.string), help: "")) else {
      return nil
    }
    do throws(ValueError) {
      return try SecretFile.read(name)
    } catch {
      report(entry.value.place, "\(secret.name): \(printable(error.description))")
      return nil
    }
  }

  /// What a device shows of others must be there. A device that changes its properties while it runs may yet get one.
  private mutating func checkReferences(in table: TOML.Table, of devices: [Configuration.Device]) {
    for device in devices {
      guard let kind = kinds.first(where: { $0.name == device.kind }), let entry = table[device.name],
        case .table(let keys) = entry.value.content
      else { continue }
      for option in kind.options {
        guard let reference = option.reference, let place = keys[option.name]?.value.place else { continue }
        let troubles: [String?]
        switch (reference, device.options[option.name]) {
        case (.properties, .list(let references)?): troubles = references.map { trouble(with: $0, for: device.name) }
        case (.device(let wanted), .string(let other)?): troubles = [trouble(withDevice: other, with: wanted, for: device.name)]
        default: troubles = []
        }
        var told: Set<String> = []
        for words in troubles.compactMap(\.self) where told.insert(words).inserted { report(place, "\(option.name): \(words)") }
      }
    }
  }

  private func trouble(with reference: String, for device: String) -> String? {
    let parts = reference.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
      return "\(quoted(reference)) is not DEVICE.PROPERTY; write one, as in phone.steps"
    }
    guard parts[0] != device, let known = properties[parts[0]] else { return trouble(withDevice: parts[0], for: device) }
    if known.contains(parts[1]) { return nil }
    return "device \(parts[0]) has no property \(quoted(parts[1])); \(suggestion(for: parts[1], among: known))"
  }

  private func trouble(withDevice name: String, with wanted: [String] = [], for device: String) -> String? {
    if name == device { return "\(quoted(name)) is this device itself; name another one" }
    if let known = properties[name] {
      return wanted.first { !known.contains($0) }.map { "device \(name) has no \($0); name one with \(wanted.joined(separator: ", "))" }
    }
    // What is wrong with a device that could not be made is told already.
    if !complete || !problems.isEmpty { return nil }
    let others = properties.keys.filter { $0 != device }.sorted()
    let words = others.isEmpty ? "add a section [device.\(printable(name, limit: 32))]" : suggestion(for: name, among: others)
    return "there is no other device \(quoted(name)); \(words)"
  }

  private mutating func kind(of table: TOML.Table, header: Place) -> Kind? {
    let names = kinds.map(\.name)
    guard let entry = table["kind"] else {
      if complete { report(header, "kind is missing; add kind = \"\(names.first ?? "")\" (known are \(names.joined(separator: ", ")))") }
      return nil
    }
    guard case .string(let name) = value("kind", of: Configuration.deviceKeys, in: table) else { return nil }
    if let kind = kinds.first(where: { $0.name == name }) { return kind }
    report(entry.value.place, "unknown kind \(quoted(name)); \(suggestion(for: name, among: names))")
    return nil
  }

  private mutating func link(_ role: LinkRole, of kind: Kind, in table: TOML.Table, header: Place) -> LinkURL? {
    guard let entry = table[role.key] else {
      let form = LinkURL.schemes.first { role.schemes.contains($0.name) }?.form ?? "replay:/PATH"
      if role.required && complete { report(header, "\(role.key) is missing; add \(role.key) = \"\(form)\"") }
      return nil
    }
    guard case .string(let text) = accept(entry, Option(role.key, ValueRule(.string), help: "")) else { return nil }
    do throws(LinkURLError) {
      let url = try LinkURL(text)
      if url.scheme == "replay" || role.schemes.contains(url.scheme) { return url }
      let schemes = (role.schemes + ["replay"]).map { $0 + ":" }.joined(separator: ", ")
      report(entry.value.place(at: 0), "\(role.key): kind \(kind.name) is not reached by \(url.scheme): links; use one of \(schemes)")
    } catch {
      report(entry.value.place(at: error.offset), "\(role.key): \(error.description)")
    }
    return nil
  }
}

extension ConfigurationCheck {
  /// The checked value of a key, or nil where it is not given or wrong.
  mutating func value(_ name: String, of options: [Option], in table: TOML.Table) -> Value? {
    guard let entry = table[name], let option = options.first(where: { $0.name == name }) else { return nil }
    return accept(entry, option)
  }

  private mutating func accept(_ entry: TOML.Entry, _ option: Option) -> Value? {
    let words: String
    if let value = entry.value.content.value {
      do throws(ValueError) {
        return try option.rule.accept(value)
      } catch {
        words = printable(error.description)
      }
    } else {
      words = "\(entry.value.content.article) is not \(option.rule.type.article)"
    }
    report(entry.value.place, "\(option.name): \(words); use \(option.rule.wish)")
    return nil
  }

  mutating func section(_ entry: TOML.Entry, form: String) -> TOML.Table? {
    if case .table(let table) = entry.value.content { return table }
    report(entry.place, "\(printable(entry.key, limit: 60)) is a section and not a key; write \(form) and its keys below it")
    return nil
  }

  mutating func refuseUnknown(in table: TOML.Table, known: [String], sections: [String] = [], of whole: String? = nil) {
    for entry in table.entries where !known.contains(entry.key) && !sections.contains(entry.key) {
      guard problems.count < 1000 else { return }
      let place = whole.map { " of \($0)" } ?? ""
      if case .table = entry.value.content {
        let words = sections.isEmpty ? "remove it" : suggestion(for: entry.key, among: sections)
        report(entry.place, "unknown section \(quoted(entry.key))\(place); \(words)")
      } else {
        report(entry.place, "unknown key \(quoted(entry.key))\(place); \(suggestion(for: entry.key, among: known))")
      }
    }
  }

  func suggestion(for wrong: String, among known: [String]) -> String {
    if let name = Renames.option(wrong), known.contains(name) { return "it has been renamed to \(name)" }
    return nearest(to: wrong, among: known).map { "did you mean \($0)?" } ?? "known are \(known.joined(separator: ", "))"
  }

  mutating func report(_ place: Place, _ text: String) {
    problems.append(ConfigurationProblem(place, text))
  }
}

func isDeviceName(_ name: String, longest: Int = 32) -> Bool {
  let bytes = name.utf8
  let isLetter = { (byte: UInt8) in (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
  let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
  guard let first = bytes.first, isLetter(first), bytes.count <= longest else { return false }
  return bytes.allSatisfy { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") }
}
