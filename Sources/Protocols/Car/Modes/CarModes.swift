// The modes of a car: the list, the current mode, and lookup by name or number. Semicolons separate the names, because names can contain
// commas. The error for an unknown or ambiguous name lists the modes.
// Source: Modes.py. Mode numbers are positions in the list; an as-built car starts in mode 0.

/// The modes of the connected car.
struct CarModes: Sendable {
  static let maxCount = 64
  private static let maxNameLength = 200

  private let device: String
  private(set) var names: [String] = []
  /// The current mode; nil if it is unknown.
  private(set) var current: Int?

  /// The state after a connection is made. An as-built car restarts its program for each client, so its mode is known.
  init(_ dialect: CarDialect, device: String) { (current, self.device) = (dialect == .asBuilt ? 0 : nil, device) }

  // MARK: Events

  /// Stores and publishes the car's list of modes; returns whether it differs from the previous one.
  mutating func received(_ body: [UInt8], _ effects: inout Effects) -> Bool {
    let old = names
    names = CarText.list(body[...], maxCount: Self.maxCount, limit: Self.maxNameLength)
    if names.isEmpty {
      effects.withdraw(.modes, "the car reported an empty list")
    } else {
      effects.publish(.modes, .list(names))
    }
    publish(&effects)
    return names != old
  }

  /// Sets the current mode, after the link has accepted the change.
  mutating func setCurrent(_ number: Int, _ effects: inout Effects) {
    current = number
    publish(&effects)
  }

  /// Publishes the current mode.
  func publish(_ effects: inout Effects) {
    if let current {
      effects.publish(.mode, .string(name(of: current)))
      effects.publish(.modeNumber, .int(current))
    } else {
      withdraw("no mode was set yet: vehiclectl set \(device).mode NAME", &effects)
    }
  }

  /// Withdraws the current mode, because it is unknown.
  func withdraw(_ reason: String, _ effects: inout Effects) {
    for property in [CarProperty.mode, .modeNumber] { effects.withdraw(property, reason) }
  }

  // MARK: Lookup

  private func name(of number: Int) -> String { names.indices.contains(number) && !names[number].isEmpty ? names[number] : String(number) }

  /// The number of a mode, given its number or its name (not case-sensitive).
  func find(_ text: String) -> Result<Int, CommandError> {
    let key = text.trimmed.lowercased()
    var found = names.indices.filter { !key.isEmpty && names[$0].lowercased() == key }
    if let number = Int(key), key.utf8.allSatisfy(isDigit), number < (names.isEmpty ? Self.maxCount : names.count),
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
      return .failure(.invalid(argument: "mode", "the car has not reported its modes yet: give a number from 0 to \(Self.maxCount - 1)"))
    }
    let known = names.enumerated().map { "\($0) \($1)" }.joined(separator: "; ")
    return .failure(.invalid(argument: "mode", "unknown mode \"\(text.prefix(80))\"; the car has \(known)"))
  }

  // MARK: The as-built car

  /// Whether the car raises an exception on Stop before it stops the motors: true for its two button-steered modes.
  static func stopIsBroken(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect == .asBuilt && (mode == 3 || mode == 4) }

  /// Whether the car is driven by tilt; false for the two modes in which it follows a line autonomously.
  static func usesTilt(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect != .asBuilt || (mode != 5 && mode != 10) }

  /// Whether the buttons switch the lights in this mode.
  static func hasLights(in mode: Int?) -> Bool { [1, 6, 8, 9].contains(mode) }
}
