// The modes of a car: the list, their descriptions, and lookup by name or number. Names can contain commas and are separated by
// semicolons. An unknown or ambiguous name is rejected with a list.
// Source: Modes.py. Mode numbers are positions in the list; the car as built starts in mode 0.

/// The modes of the connected car.
struct CarModes: Sendable, Equatable {
  static let most = 64
  private static let maxNameLength = 200
  private static let maxTextLength = 1000

  private(set) var names: [String] = []
  /// The known descriptions, by number.
  private(set) var texts: [Int: String] = [:]
  /// The current mode; nil: unknown.
  var current: Int?

  mutating func learn(names body: [UInt8]) {
    let names = CarText.list(body[...], most: Self.most, limit: Self.maxNameLength)
    // A different list means another car.
    if names != self.names { texts = [:] }
    self.names = names
  }

  mutating func learn(text body: [UInt8], of number: Int) {
    guard (0..<Self.most).contains(number) else { return }
    texts[number] = CarText.clean(body[...], limit: Self.maxTextLength)
  }

  /// Sets the descriptions of all modes.
  mutating func learn(texts body: [UInt8]) {
    for (number, text) in CarText.list(body[...], most: Self.most, limit: Self.maxTextLength).enumerated() { texts[number] = text }
  }

  func name(of number: Int) -> String { names.indices.contains(number) && !names[number].isEmpty ? names[number] : String(number) }

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

  // MARK: As built

  /// In these modes the car is steered by its buttons, which do not work: Stop raises an exception before the motors stop.
  static func stopIsBroken(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect == .asBuilt && (mode == 3 || mode == 4) }

  /// In these modes the car follows a line autonomously and ignores tilt.
  static func takesTilt(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect != .asBuilt || (mode != 5 && mode != 10) }

  /// In these modes the buttons switch the lights.
  static func hasLights(in mode: Int?) -> Bool { [1, 6, 8, 9].contains(mode) }
}
