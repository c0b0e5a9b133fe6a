// Checks the subsections of devices: those in a device's own section, and those that devices of a kind share through the files of a
// folder (`[signal.NAME]` in signals.d). Problems are reported with the location of the key, or of the character, that causes them.

import ConfigurationFiles
import Protocols
import ServiceRuntime

/// A checked subsection and its location.
struct NamedSection {
  var subsection: Setup.Subsection
  var table: TOML.Table
  var location: SourceLocation
  /// Whether each key is valid by itself. Only then does the kind check the section as a whole.
  var isValid: Bool
}

/// A subsection from a file of a shared folder.
struct SharedSection {
  var section: NamedSection
  /// The devices to which the section applies; nil for all devices of the kind.
  var devices: [String]?
  var isUsed = false
}

extension ConfigurationCheck {
  private static let devices = Option("devices", ValueRule(.list), help: "devices that it applies to; default: all devices of the kind")

  /// Reports sections of the main file that belong in a folder, and returns their names.
  mutating func reportMisplaced(in root: TOML.Table) -> [String] {
    let sections = kinds.flatMap(\.sections).filter { $0.folder != nil && root[$0.name] != nil }
    for section in sections {
      guard let entry = root[section.name] else { continue }
      report(
        entry.location,
        "[\(section.name).NAME] belongs in a file of \(section.folder ?? "")/; move it there, or write [device.NAME.\(section.name).NAME]")
    }
    return sections.map(\.name)
  }

  /// Reads the sections of the shared folders. `devices` holds the device sections of the main file.
  mutating func readShared(for devices: TOML.Table) {
    for kind in kinds {
      for section in kind.sections {
        guard let folder = section.folder, let files = shared[folder] else { continue }
        let names = devices.entries.filter { isDevice($0, of: kind) }.map(\.key)
        sharedSections[key(kind, section)] = files.flatMap { sections(section, in: $0, of: kind, names) }
      }
    }
  }

  private func key(_ kind: Kind, _ section: Section) -> String { "\(kind.name) \(section.name)" }

  private func isDevice(_ entry: TOML.Entry, of kind: Kind) -> Bool {
    guard case .table(let table) = entry.value.content, case .string(let name)? = table["kind"]?.value.content else { return false }
    return name == kind.name
  }

  private mutating func sections(_ section: Section, in file: TOML.Table, of kind: Kind, _ names: [String]) -> [SharedSection] {
    let form = "[\(section.name).NAME]"
    // Several kinds can share a folder.
    let known = kinds.flatMap(\.sections).filter { $0.folder == section.folder }.map(\.name)
    let usage = "write \(known.map { "[\($0).NAME]" }.joined(separator: " or ")) and its keys below it"
    for entry in file.entries where !known.contains(entry.key) {
      guard problems.count < 1000 else { return [] }
      let remedy = nearest(to: entry.key, among: known).map { "did you mean \($0)?" } ?? usage
      if case .table = entry.value.content {
        reportOnce(entry.location, "unknown section \(quoted(entry.key)); \(remedy)")
      } else {
        reportOnce(entry.location, "key \(quoted(entry.key)) is outside a section; \(usage)")
      }
    }
    guard let entry = file[section.name], let tables = self.section(entry, form: form) else { return [] }
    return tables.entries.compactMap { child in
      guard problems.count < 1000, let named = namedSection(child, section, form: form, further: [Self.devices]) else { return nil }
      let devices = value(Self.devices.name, of: [Self.devices], in: named.table)
      guard case .list(let selected)? = devices else { return SharedSection(section: named) }
      for name in selected where !names.contains(name) {
        let remedy = names.isEmpty ? "configure one, or remove the key devices" : suggestion(for: name, among: names)
        let location = named.table[Self.devices.name]?.value.location ?? named.location
        report(location, "devices: unknown device \(quoted(name)) of kind \(kind.name); \(remedy)")
      }
      return SharedSection(section: named, devices: selected)
    }
  }

  /// The subsections of a device, its own first.
  mutating func subsections(_ section: Section, of device: String, _ kind: Kind, in table: TOML.Table) -> [NamedSection] {
    let form = "[device.\(device).\(section.name).NAME]"
    var result: [NamedSection] = []
    var locations: [String: SourceLocation] = [:]
    if let entry = table[section.name], let tables = self.section(entry, form: form) {
      result = tables.entries.compactMap { namedSection($0, section, form: form, further: []) }
      for named in result { locations[named.subsection.name] = named.location }
    }
    for index in sharedSections[key(kind, section), default: []].indices {
      guard let shared = sharedSections[key(kind, section)]?[index], shared.devices?.contains(device) ?? true else { continue }
      sharedSections[key(kind, section)]?[index].isUsed = true
      let name = shared.section.subsection.name
      if let earlier = locations[name] {
        reportOnce(shared.section.location, "\(section.name) \(quoted(name)) is already defined at \(earlier); rename one of the two")
      } else {
        locations[name] = shared.section.location
        result.append(shared.section)
      }
    }
    return result
  }

  /// Checks each key of a subsection by itself. The known keys are those of `section` and `further`.
  private mutating func namedSection(_ entry: TOML.Entry, _ section: Section, form: String, further: [Option]) -> NamedSection? {
    guard let table = self.section(entry, form: form) else { return nil }
    let before = problems.count
    if !isDeviceName(entry.key, maxLength: section.maxNameLength) {
      let rule = "use at most \(section.maxNameLength) lower-case letters, digits and dashes, beginning with a letter"
      report(entry.location, "invalid \(section.name) name \(quoted(entry.key)); \(rule)")
    }
    let known = (section.options + further).map(\.name)
    rejectUnknown(in: table, known: known, of: "\(section.name) \(printable(entry.key, limit: 32))")
    var options: [String: Value] = [:]
    for option in section.options { options[option.name] = value(option.name, of: section.options, in: table) ?? option.defaultValue }
    return NamedSection(
      subsection: Setup.Subsection(entry.key, options), table: table, location: entry.location, isValid: problems.count == before)
  }

  /// Reports the problems that the kind finds in a device's subsections, and returns whether they are valid.
  @discardableResult mutating func check(_ sections: [NamedSection], _ section: Section, _ setup: Setup) -> Bool {
    var isValid = true
    for named in sections {
      let errors = named.isValid ? section.check?(named.subsection, setup) ?? [] : []
      if !named.isValid || !errors.isEmpty { isValid = false }
      for error in errors where problems.count < 1000 { report(error, in: named.table, at: named.location) }
    }
    return isValid
  }

  /// Checks the shared sections that apply to no device.
  mutating func checkUnused() {
    for kind in kinds {
      let options = kind.options.map { ($0.name, $0.defaultValue) }
      let setup = Setup(options: Dictionary(uniqueKeysWithValues: options).compactMapValues(\.self))
      for section in kind.sections {
        let unused = sharedSections[key(kind, section), default: []].filter { !$0.isUsed }
        check(unused.map(\.section), section, setup)
      }
    }
  }

  /// Reports a problem that a kind found, with the location of the key or of the character that causes it.
  mutating func report(_ error: OptionError, in table: TOML.Table, at location: SourceLocation) {
    guard let option = error.option else { return reportOnce(location, printable(error.message, limit: 400)) }
    let value = table[option]?.value
    let exact = value.map { value in error.offset.map { value.location(at: $0) } ?? value.location } ?? location
    // In a string with escapes the column is unknown, so the message gives the character.
    let character = error.offset.map { value?.isLiteral == true ? "" : "character \($0 + 1): " } ?? ""
    reportOnce(exact, "\(option): \(character)\(printable(error.message, limit: 400))")
  }

  /// Reports a problem of a shared section once, not for each device that has the section.
  private mutating func reportOnce(_ location: SourceLocation, _ message: String) {
    if reported.insert("\(location) \(message)").inserted { report(location, message) }
  }
}
