// The section of one device in the configuration file: its lines of TOML, and the rule for device names. No I/O, except through LinkText.

import Varlink

struct DeviceSection: Equatable {
  var name: String
  var kind: String
  var link: String
  /// Further options in the order of the file, with their values in TOML.
  var options: [(key: String, value: String)] = []

  static func == (left: DeviceSection, right: DeviceSection) -> Bool { left.lines == right.lines }

  var lines: [String] {
    let pairs = [("kind", Self.quoted(kind)), ("link", Self.quoted(link))] + options
    return ["[device.\(name)]"] + pairs.map { "\($0) = \($1)" }
  }

  /// A TOML basic string.
  static func quoted(_ text: String) -> String {
    let escaped = text.unicodeScalars.map { scalar -> String in
      switch scalar {
      case "\"", "\\": return "\\\(scalar)"
      default:
        guard scalar.value < 0x20 || scalar.value == 0x7F else { return String(scalar) }
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
    return "\"\(escaped.joined())\""
  }

  /// The sections of all recognised candidates as one piece of TOML, for `scan --toml`. A comment describes each candidate. A candidate of
  /// unknown kind, or whose link is already configured, has only this comment.
  static func lines(for candidates: [Candidate], _ devices: [Contract.Device]) -> [String] {
    var names = Set(devices.map(\.name))
    return candidates.flatMap { candidate -> [String] in
      let found = [candidate.transport, candidate.address, candidate.rssi.map { "\($0) dBm" }, candidate.name].compactMap(\.self)
      let comment = "# " + Output.oneLine(found.joined(separator: "  "))
      if let owner = devices.first(where: { $0.links.contains { LinkText.leads($0, to: candidate) } }) {
        return ["\(comment): configured as \(owner.name)"]
      }
      guard let kind = candidate.kind.flatMap({ SetupKind[$0] }) else { return ["\(comment): unknown kind"] }
      let section = DeviceSection(candidate, kind, avoiding: names)
      names.insert(section.name)
      return [comment] + section.lines
    }
  }

  /// Creates the section with the defaults of this kind, for `scan --toml`.
  init(_ candidate: Candidate, _ kind: SetupKind, avoiding names: Set<String>) {
    var answers: [String: String] = [:]
    for question in kind.questions where question.isAsked(for: candidate, answers) { answers[question.key] = question.fallback(candidate) }
    self.init(candidate, kind, name: Self.unused(kind.deviceName, names), answers)
  }

  init(_ candidate: Candidate, _ kind: SetupKind, name: String, _ answers: [String: String]) {
    (self.name, self.kind) = (name, kind.name)
    link = candidate.link(kind: kind, options: answers)
    options = kind.questions.compactMap { question in answers[question.key].flatMap(question.value).map { (question.key, $0) } }
  }

  /// `car`, or `car-2`, `car-3` … if that name is used.
  static func unused(_ name: String, _ used: Set<String>) -> String {
    guard used.contains(name) else { return name }
    return (2...).lazy.map { "\(name)-\($0)" }.first { !used.contains($0) } ?? name
  }

  /// Why this cannot be the name of a new device, or nil.
  static func problem(withName name: String, _ used: Set<String>) -> String? {
    let isLetter = { (byte: UInt8) in (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
    let isOther = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-") }
    guard let first = name.utf8.first, isLetter(first), name.utf8.count <= 32, name.utf8.allSatisfy({ isLetter($0) || isOther($0) }) else {
      return "\"\(name)\" is not a device name; use at most 32 lower-case letters, digits and dashes, starting with a letter"
    }
    return used.contains(name) ? "device \(name) exists already; choose another name" : nil
  }

  /// The name of the device in the first section of these lines; nil if they do not begin with one.
  static func name(in lines: [String]) -> String? {
    let first = lines.first { !$0.isEmpty && !$0.hasPrefix("#") } ?? ""
    guard first.hasPrefix("[device."), first.hasSuffix("]") else { return nil }
    let name = String(first.dropFirst("[device.".count).dropLast())
    return problem(withName: name, []) == nil ? name : nil
  }
}
