// Subsections of devices: those in a device's own section, and those that devices of a kind share through the files of a folder
// (`[signal.NAME]` in signals.d). Holds both against their keys and against each other; what a kind has to say of one is told at the
// place of the key, and of the character, that it is about.

import Protocols

/// A checked subsection and where it stands.
struct NamedSection {
  var subsection: Setup.Subsection
  var table: TOML.Table
  var place: Place
  /// Its keys hold what they may: the kind can look at it.
  var isSound: Bool
}

/// One that stands in a folder's file.
struct SharedSection {
  var section: NamedSection
  /// nil: all devices of the kind.
  var devices: [String]?
  var isUsed = false
}

extension ConfigurationCheck {
  private static let devices = Option("devices", ValueRule(.list), help: "the devices that have it; left out, all of the kind")

  /// Sections in the main file that belong into a folder.
  mutating func misplaced(in root: TOML.Table) -> [String] {
    let sections = kinds.flatMap(\.sections).filter { $0.folder != nil && root[$0.name] != nil }
    for section in sections {
      guard let entry = root[section.name] else { continue }
      report(
        entry.place,
        "[\(section.name).NAME] stands in a file of \(section.folder ?? "")/; move it there, or write [device.NAME.\(section.name).NAME]")
    }
    return sections.map(\.name)
  }

  /// Reads the folders' files; `devices` is what the main file has.
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
    for entry in file.entries where entry.key != section.name {
      guard problems.count < 1000 else { return [] }
      let words = nearest(to: entry.key, among: [section.name]).map { "did you mean \($0)?" } ?? "write \(form) and its keys below it"
      if case .table = entry.value.content {
        report(entry.place, "unknown section \(quoted(entry.key)); \(words)")
      } else {
        report(entry.place, "unknown key \(quoted(entry.key)) outside of a section; write \(form) and its keys below it")
      }
    }
    guard let entry = file[section.name], let tables = self.section(entry, form: form) else { return [] }
    return tables.entries.compactMap { one in
      guard problems.count < 1000, let named = named(one, section, form: form, and: [Self.devices]) else { return nil }
      let devices = value(Self.devices.name, of: [Self.devices], in: named.table)
      guard case .list(let wanted)? = devices else { return SharedSection(section: named) }
      for name in wanted where !names.contains(name) {
        let words = names.isEmpty ? "configure one, or leave devices out" : suggestion(for: name, among: names)
        let place = named.table[Self.devices.name]?.value.place ?? named.place
        report(place, "devices: there is no device \(quoted(name)) of kind \(kind.name); \(words)")
      }
      return SharedSection(section: named, devices: wanted)
    }
  }

  /// The subsections of a device, its own first.
  mutating func subsections(_ section: Section, of device: String, _ kind: Kind, in table: TOML.Table) -> [NamedSection] {
    let form = "[device.\(device).\(section.name).NAME]"
    var found: [NamedSection] = []
    var places: [String: Place] = [:]
    if let entry = table[section.name], let tables = self.section(entry, form: form) {
      found = tables.entries.compactMap { named($0, section, form: form, and: []) }
      for one in found { places[one.subsection.name] = one.place }
    }
    for index in sharedSections[key(kind, section), default: []].indices {
      guard let shared = sharedSections[key(kind, section)]?[index], shared.devices?.contains(device) ?? true else { continue }
      sharedSections[key(kind, section)]?[index].isUsed = true
      let name = shared.section.subsection.name
      if let earlier = places[name] {
        tell(shared.section.place, "\(section.name) \(quoted(name)) stands at \(earlier) already; give one of the two another name")
      } else {
        places[name] = shared.section.place
        found.append(shared.section)
      }
    }
    return found
  }

  private mutating func named(_ one: TOML.Entry, _ section: Section, form: String, and more: [Option]) -> NamedSection? {
    guard let table = self.section(one, form: form) else { return nil }
    let before = problems.count
    if !isDeviceName(one.key, longest: section.maxNameLength) {
      let rule = "use at most \(section.maxNameLength) lower-case letters, digits and dashes, a letter first"
      report(one.place, "\(quoted(one.key)) cannot name a \(section.name); \(rule)")
    }
    let known = (section.options + more).map(\.name)
    refuseUnknown(in: table, known: known, of: "\(section.name) \(printable(one.key, limit: 32))")
    var options: [String: Value] = [:]
    for option in section.options { options[option.name] = value(option.name, of: section.options, in: table) ?? option.fallback }
    return NamedSection(
      subsection: Setup.Subsection(one.key, options), table: table, place: one.place, isSound: problems.count == before)
  }

  /// Tells what the kind has to say of a device's subsections; false where anything is wrong with them.
  @discardableResult mutating func check(_ sections: [NamedSection], _ section: Section, _ setup: Setup) -> Bool {
    var isRight = true
    for one in sections {
      let errors = one.isSound ? section.check?(one.subsection, setup) ?? [] : []
      if !one.isSound || !errors.isEmpty { isRight = false }
      for error in errors where problems.count < 1000 { report(error, in: one.table, at: one.place) }
    }
    return isRight
  }

  /// What no device has must be right all the same.
  mutating func checkUnused() {
    for kind in kinds {
      let options = kind.options.map { ($0.name, $0.fallback) }
      let setup = Setup(options: Dictionary(uniqueKeysWithValues: options).compactMapValues(\.self))
      for section in kind.sections {
        let unused = sharedSections[key(kind, section), default: []].filter { !$0.isUsed }
        check(unused.map(\.section), section, setup)
      }
    }
  }

  /// Tells what a kind found, at the key or the character that it is about.
  mutating func report(_ error: OptionError, in table: TOML.Table, at place: Place) {
    guard let option = error.option else { return tell(place, printable(error.message, limit: 400)) }
    let value = table[option]?.value
    let exact = value.map { value in error.offset.map { value.place(at: $0) } ?? value.place } ?? place
    // Where the text cannot be counted in the file, the words say which character it is.
    let character = error.offset.map { value?.literal == true ? "" : "character \($0 + 1): " } ?? ""
    tell(exact, "\(option): \(character)\(printable(error.message, limit: 400))")
  }

  /// Says it once, however many devices have it.
  private mutating func tell(_ place: Place, _ words: String) {
    if told.insert("\(place) \(words)").inserted { report(place, words) }
  }
}
