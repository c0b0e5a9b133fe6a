// One line of the car's status: `Motor battery voltage: 7.41 V`. Only numbers with a decimal point are accepted: the car passes on the
// output of other programs, which depends on its locale.
// Source: AutoTT, Status.py: labels and units are English, and values may be empty.

struct CarStatusLine: Sendable, Equatable {
  /// The value after the colon.
  enum Content: Sendable, Equatable {
    case number(Double, unit: String?)
    case text(String)
    case empty
    /// Digits with a comma, which may be a thousands separator or a decimal comma.
    case comma(unit: String?)
  }

  let label: String
  let content: Content
  /// The text after the colon, as received.
  let raw: String

  private static let maxUnitLength = 8

  /// Parses a cleaned line; nil if it has no label.
  init?(_ line: String) {
    guard let colon = line.firstIndex(of: ":") else { return nil }
    label = line[..<colon].trimmed
    raw = line[line.index(after: colon)...].trimmed
    guard !label.isEmpty else { return nil }
    content = Self.read(raw)
  }

  private static func read(_ raw: String) -> Content {
    if raw.isEmpty { return .empty }
    let digits = raw.utf8.prefix { (0x30...0x39).contains($0) || [0x2B, 0x2C, 0x2D, 0x2E].contains($0) }
    let number = String(decoding: digits, as: UTF8.self)
    let unit = String(decoding: raw.utf8.dropFirst(digits.count), as: UTF8.self).trimmed
    let isUnit = unit.count <= maxUnitLength && unit.unicodeScalars.allSatisfy { $0 != " " && !("0"..."9").contains($0) }
    guard isUnit, digits.contains(where: { (0x30...0x39).contains($0) }) else { return .text(raw) }
    let known: String? = unit.isEmpty ? nil : unit == "C" ? "°C" : unit
    if digits.contains(0x2C) { return .comma(unit: known) }
    return CarNumber.read(number).map { .number($0, unit: known) } ?? .text(raw)
  }

  /// A property name for a label: `Wheel speed (left)` becomes `wheel-speed-left`.
  static func propertyName(for label: String) -> String {
    var name = ""
    for scalar in label.lowercased().unicodeScalars where name.utf8.count < 40 {
      if ("a"..."z").contains(scalar) || ("0"..."9").contains(scalar) {
        name.unicodeScalars.append(scalar)
      } else if !name.isEmpty, !name.hasSuffix("-") {
        name += "-"
      }
    }
    while name.hasSuffix("-") { name.removeLast() }
    guard let first = name.unicodeScalars.first, ("a"..."z").contains(first) else { return name.isEmpty ? "status-line" : "status-\(name)" }
    return name
  }
}
