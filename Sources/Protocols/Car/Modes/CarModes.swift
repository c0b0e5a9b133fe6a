// The modes of a car: the list, the current mode, and lookup by name or number. Names can contain commas and are separated by
// semicolons. An unknown or ambiguous name is rejected with a list.
// Source: Modes.py. Mode numbers are positions in the list; the car as built starts in mode 0.

/// The modes of the connected car.
struct CarModes: Sendable {
  static let most = 64
  private static let maxNameLength = 200

  private(set) var names: [String] = []
  /// The current mode; nil: unknown.
  private(set) var current: Int?

  /// A new link: a car that has started its program.
  init(_ dialect: CarDialect) { current = dialect == .asBuilt ? 0 : nil }

  // MARK: Events

  /// The car has sent its list: returns whether it is another one, of another car.
  mutating func received(_ body: [UInt8], _ effects: inout Effects) -> Bool {
    let old = names
    names = CarText.list(body[...], most: Self.most, limit: Self.maxNameLength)
    if names.isEmpty {
      effects.withdraw(.modes, "the car reported an empty list")
    } else {
      effects.publish(.modes, .list(names))
    }
    publish(&effects)
    return names != old
  }

  /// The link has accepted a change of mode.
  mutating func entered(_ number: Int, _ effects: inout Effects) {
    current = number
    publish(&effects)
  }

  /// Publishes the current mode.
  func publish(_ effects: inout Effects) {
    if let current {
      effects.publish(.mode, .string(name(of: current)))
      effects.publish(.modeNumber, .int(current))
    } else {
      withdraw("no mode was set yet: vehiclectl set mode NAME", &effects)
    }
  }

  /// The current mode is unknown.
  func withdraw(_ reason: String, _ effects: inout Effects) {
    for signal in [CarSignal.mode, .modeNumber] { effects.withdraw(signal, reason) }
  }

  // MARK: Lookup

  private func name(of number: Int) -> String { names.indices.contains(number) && !names[number].isEmpty ? names[number] : String(number) }

  /// The number of a mode, by its name in any case or its number.
  func find(_ text: String) -> Result<Int, CommandError> {
    let wanted = text.trimmed.lowercased()
    var found = names.indices.filter { !wanted.isEmpty && names[$0].lowercased() == wanted }
    if let number = Int(wanted), wanted.utf8.allSatisfy(isDigit), number < (names.isEmpty ? Self.most : names.count),
      !found.contains(number)
    {
      found.append(number)
    }
    if found.count == 1 { return .success(found[0]) }
    if found.count > 1 {
      let numbers = found.map(String.init).joined(separator: " and ")
      return .failure(.invalid(argument: "mode", "\"\(text)\" is ambiguous: modes \(numbers); give the number"))
    }
    if names.isEmpty {
      return .failure(.invalid(argument: "mode", "the car has not reported its modes yet: give a number from 0 to \(Self.most - 1)"))
    }
    let known = names.enumerated().map { "\($0) \($1)" }.joined(separator: "; ")
    return .failure(.invalid(argument: "mode", "unknown mode \"\(text.prefix(80))\"; the car has \(known)"))
  }

  // MARK: The car as built

  /// In these modes the car is steered by its buttons, which do not work: Stop raises an exception before the motors stop.
  static func stopIsBroken(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect == .asBuilt && (mode == 3 || mode == 4) }

  /// In these modes the car follows a line autonomously and ignores tilt.
  static func takesTilt(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect != .asBuilt || (mode != 5 && mode != 10) }

  /// In these modes the buttons switch the lights.
  static func hasLights(in mode: Int?) -> Bool { [1, 6, 8, 9].contains(mode) }
}
