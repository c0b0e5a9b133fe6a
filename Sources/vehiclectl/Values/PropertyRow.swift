// A property with its reading, as views show it: group, importance, value, text, age, history. No I/O.

import Protocols
import Varlink

struct PropertyRow {
  let name: String
  let unit: String?
  private(set) var group = PropertyGroup.general.rawValue
  /// 1 headline, 2 main, 3 detail, 4 statistic.
  private(set) var rank = PropertyRank.main.rawValue
  private(set) var range: ClosedRange<Double>?
  private(set) var value: Contract.Value?
  private(set) var reason: String?
  /// Since when there is no value, in seconds since the Unix epoch, or nil if that is unknown.
  private var absentSince: Double?
  /// The value as text, without unit and without more digits than matter; empty if there is none.
  private(set) var text = ""
  /// When the value was measured, or nil if that is unknown.
  private(set) var measuredAt: Double?
  /// When the value last changed.
  private(set) var changedAt = -Double.infinity
  private(set) var history = SampleHistory()

  /// A row without a value.
  init(_ reading: Contract.Reading, _ property: Contract.Property?) {
    (name, unit) = (reading.property, reading.unit)
    declare(property)
  }

  /// The rows of a device with their values at this time, in order.
  static func rows(of device: Contract.Device, _ schema: Contract.Schema?, at now: Double) -> [PropertyRow] {
    let declared = Dictionary((schema?.properties ?? []).map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let rows = device.readings.map { reading in
      var row = PropertyRow(reading, declared[reading.property])
      row.note(reading, measuredAt: reading.age.map { now - $0 }, at: now)
      return row
    }
    let order = Dictionary((schema?.properties ?? []).enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    return inOrder(rows, declared: order)
  }

  /// Sorts rows by group, importance and declaration. Unknown groups, from a newer daemon, come last.
  static func inOrder(_ rows: [PropertyRow], declared order: [String: Int]) -> [PropertyRow] {
    let groups = Dictionary(uniqueKeysWithValues: zip(PropertyGroup.allCases.map(\.rawValue), 0...))
    return rows.enumerated().sorted {
      let (left, right) = ($0.element, $1.element)
      return (groups[left.group] ?? .max, left.rank, order[left.name] ?? $0.offset) < (
        groups[right.group] ?? .max, right.rank, order[right.name] ?? $1.offset
      )
    }.map(\.element)
  }

  /// Stores the declaration of the property; without one, the row has the group `general` and the rank `main`.
  mutating func declare(_ property: Contract.Property?) {
    group = property?.group ?? PropertyGroup.general.rawValue
    rank = property?.rank ?? PropertyRank.main.rawValue
    let limits = property.flatMap { property in property.minimum.flatMap { low in property.maximum.map { (low, $0) } } }
    range = limits.flatMap { $0.0 <= $0.1 ? $0.0...$0.1 : nil }
  }

  /// Stores a reading.
  mutating func note(_ reading: Contract.Reading, measuredAt: Double?, at now: Double) {
    if value != reading.value {
      value = reading.value
      changedAt = measuredAt ?? now
      text = reading.value.map { Format.view($0, of: reading.property) } ?? ""
    }
    reason = reading.reason
    absentSince = reading.value == nil ? reading.time.map { Double($0) / 1e6 } : nil
    self.measuredAt = measuredAt
  }

  /// Adds the value to the history.
  mutating func record(at second: Int) { history.add(value?.number, at: second) }

  /// Records in the history that the value was withdrawn.
  mutating func withdraw(at second: Int) { history.add(nil, at: second) }

  /// Takes over the value and the history of a row of the same property.
  mutating func continueFrom(_ old: PropertyRow) {
    (history, changedAt, value, text) = (old.history, old.changedAt, old.value, old.text)
  }

  /// The age of the value in seconds.
  func age(at now: Double) -> Double? { measuredAt.map { max(0, now - $0) } }

  /// For how many seconds there has been no value; nil if that is unknown, or if the device never has it.
  func absence(at now: Double) -> Double? { isNotReported ? nil : absentSince.map { max(0, now - $0) } }

  /// Whether this vehicle or device does not have the value at all.
  var isNotReported: Bool { value == nil && reason?.hasPrefix("not reported by") == true }

  /// The value with at most one decimal place, and none from 1000 on.
  var shortText: String {
    guard case .float(let number)? = value, abs(number) < 1e9 else { return text }
    if abs(number) >= 1000 { return String(Int(number.rounded())) }
    return Value.text((number * 10).rounded() / 10 + 0)
  }

  /// The value for a one-line summary: `50.4 km/h`, `light rain`; with its name if it means nothing without it: `running off`.
  var headline: String {
    if let unit { return "\(shortText) \(unit)" }
    switch value {
    case .bool?, .int?, .float?: return "\(name) \(shortText)"
    default: return text
    }
  }
}
