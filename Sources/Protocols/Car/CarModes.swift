// The modes of a car: its list, what it says about each, and finding the one that a person means. Names have commas in them
// and are told apart by semicolons alone. A name that is not known, or not the only one, is refused with the known ones.
// Facts: Modes.py. Mode numbers are places in the list; the car as built is in mode 0 when its program starts.

/// What is known of the modes of the car at the other end.
struct CarModes: Sendable, Equatable {
  static let most = 64
  private static let maxNameLength = 200
  private static let maxTextLength = 1000

  private(set) var names: [String] = []
  /// What the car says of each, by number, as far as it was asked.
  private(set) var texts: [Int: String] = [:]
  /// The one that the car is in; nil: nobody has told it one yet.
  var current: Int?

  mutating func learn(names body: [UInt8]) {
    let names = CarText.list(body[...], most: Self.most, limit: Self.maxNameLength)
    // Another list is another car's.
    if names != self.names { texts = [:] }
    self.names = names
  }

  mutating func learn(text body: [UInt8], of number: Int) {
    guard (0..<Self.most).contains(number) else { return }
    texts[number] = CarText.clean(body[...], limit: Self.maxTextLength)
  }

  /// The texts of all modes at once.
  mutating func learn(texts body: [UInt8]) {
    for (number, text) in CarText.list(body[...], most: Self.most, limit: Self.maxTextLength).enumerated() { texts[number] = text }
  }

  func name(of number: Int) -> String { names.indices.contains(number) && !names[number].isEmpty ? names[number] : String(number) }

  /// The number of the mode that a person means: its name in any case, or its number.
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
      return .failure(.invalid(argument: "mode", "\"\(text)\" may be mode \(numbers): give the number"))
    }
    if names.isEmpty {
      return .failure(.invalid(argument: "mode", "the car has not told the names of its modes: give a number from 0 to \(Self.most - 1)"))
    }
    let known = names.enumerated().map { "\($0) \($1)" }.joined(separator: "; ")
    return .failure(.invalid(argument: "mode", "the car has no mode \"\(text.prefix(80))\"; it has \(known)"))
  }

  // MARK: As built

  /// In these the car is steered by its buttons, which are broken: Stop ends in an exception before the motors have heard of it.
  static func stopIsBroken(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect == .asBuilt && (mode == 3 || mode == 4) }

  /// In these the car follows a line by itself and takes no tilt.
  static func takesTilt(in mode: Int?, _ dialect: CarDialect) -> Bool { dialect != .asBuilt || (mode != 5 && mode != 10) }

  /// In these the buttons are for the lights.
  static func hasLights(in mode: Int?) -> Bool { [1, 6, 8, 9].contains(mode) }
}
