// The style roles of values and devices, and warnings. No I/O. Identifies properties by names and units that all kinds share.

import Protocols
import Varlink

enum Meaning {
  static func role(of row: PropertyRow) -> StyleRole {
    guard let value = row.value else { return .dim }
    switch (row.name, value) {
    case ("mil", .bool(true)): return .warn
    case ("dtc-count", .int(1...)): return .warn
    case ("fault-code", .string(let code)) where code != "none": return .bad
    case ("connected", .bool(false)): return .bad
    default: break
    }
    if let share = share(of: row), isCharge(row) { return role(ofCharge: share) }
    return .plain
  }

  /// The value as a fraction of its range; nil unless the unit is % and the range is at most 200 %.
  static func share(of row: PropertyRow) -> Double? {
    guard row.unit == "%", let number = row.value?.number else { return nil }
    let range = row.range ?? 0...100
    guard range.lowerBound >= 0, range.upperBound > range.lowerBound, range.upperBound <= 200 else { return nil }
    return (number - range.lowerBound) / (range.upperBound - range.lowerBound)
  }

  static func role(ofBar row: PropertyRow) -> StyleRole {
    guard let share = share(of: row), isCharge(row) else { return .accent }
    return role(ofCharge: share)
  }

  /// Whether a low percentage is a problem: state of charge, fuel.
  private static func isCharge(_ row: PropertyRow) -> Bool {
    row.name.hasPrefix("state-of-charge") || row.name == "battery" || row.name == "fuel-level"
  }

  private static func role(ofCharge share: Double) -> StyleRole { share < 0.1 ? .bad : share < 0.2 ? .warn : .good }

  /// The age of a value: `now` if it is current, because an unchanged value is published once a second.
  static func age(_ seconds: Double?) -> String {
    guard let seconds else { return "" }
    return seconds < 1.5 ? "now" : seconds < 9.5 ? "\(Int(seconds.rounded())) s" : Format.duration(seconds)
  }

  /// The style role of a device in tabs and lists.
  static func role(of device: Contract.Device) -> StyleRole { device.needsAttention ? .bad : device.problem == nil ? .good : .dim }

  /// The faults that the vehicle itself reports: `MIL on, 2 DTCs`; nil if there are none. `row` returns the property with a name. `state`
  /// is put before `DTCs`, such as `stored ` where there is room for it.
  static func warning(state: String = "", _ row: (String) -> PropertyRow?) -> String? {
    var parts: [String] = []
    if case .bool(true)? = row("mil")?.value { parts.append("MIL on") }
    if case .int(let count)? = row("dtc-count")?.value, count > 0 { parts.append("\(count) \(state)DTC\(count == 1 ? "" : "s")") }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }

  /// A warning where there is little room.
  static func short(_ warning: String) -> String { warning.hasPrefix("MIL") ? "MIL" : warning }
}
