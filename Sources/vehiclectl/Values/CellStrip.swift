// Summarises lists of numbers, such as cell voltages: `192 cells 3.80–3.82 V, Δ 20 mV`, and one character for each cell. Lists of the same
// unit in one group belong together. No I/O, and no code for particular cars.

import Protocols
import Varlink

struct CellStrip {
  /// The value of each cell, or nil if it is unreadable.
  let numbers: [Double?]
  let unit: String
  let group: String
  /// The time of the oldest measurement.
  let measuredAt: Double?
  /// The minimum range of the graph in `unit`, so that small differences look small.
  private static let minRange = 0.04
  /// The maximum differences from the median that are good and acceptable, in V: two and five steps of 20 mV, plus a margin.
  private static let (good, acceptable) = (0.045, 0.105)

  /// The rows as one strip; nil if they are not lists of numbers.
  init?(_ rows: [PropertyRow]) {
    guard let first = rows.first else { return nil }
    var numbers: [Double?] = []
    for row in rows { numbers += Self.numbers(of: row) ?? [] }
    guard numbers.contains(where: { $0 != nil }) else { return nil }
    (self.numbers, unit, group) = (numbers, first.unit ?? "", first.group)
    measuredAt = rows.compactMap(\.measuredAt).min()
  }

  /// The strips of a group, one for each unit.
  static func strips(_ rows: [PropertyRow]) -> [CellStrip] {
    let lists = rows.filter(accepts)
    var units: [String?] = []
    for row in lists where !units.contains(row.unit) { units.append(row.unit) }
    return units.compactMap { unit in CellStrip(lists.filter { $0.unit == unit }) }
  }

  /// Whether the row is a list of numbers.
  static func accepts(_ row: PropertyRow) -> Bool { numbers(of: row) != nil }

  private static func numbers(of row: PropertyRow) -> [Double?]? {
    guard case .list(let entries)? = row.value, entries.count >= 4 else { return nil }
    let numbers = entries.map { $0 == "?" ? nil : Double($0) }
    return zip(entries, numbers).allSatisfy { $0 == "?" || $1 != nil } ? numbers : nil
  }

  private var known: [Double] { numbers.compactMap { $0 } }

  /// The summary without the number of cells: `3.80–3.82 V, Δ 20 mV`.
  var range: String {
    guard let low = known.min(), let high = known.max() else { return "" }
    let isVoltage = unit == "V"
    let difference =
      isVoltage ? "\(Int(((high - low) * 1000).rounded())) mV" : "\(Value.text(((high - low) * 100).rounded() / 100)) \(unit)"
    return "\(Self.fixed(low, isVoltage))–\(Self.fixed(high, isVoltage)) \(unit), Δ \(difference)"
  }

  /// The number of entries: `192 cells`, `192 cells, 2 unreadable`.
  var count: String {
    let missing = numbers.count - known.count
    let noun = group == PropertyGroup.cells.rawValue ? "cells" : "values"
    return "\(numbers.count) \(noun)" + (missing > 0 ? ", \(missing) unreadable" : "")
  }

  /// Each cell as a character. Its height shows the difference from the median, which is at half height.
  var blocks: [(scalar: Unicode.Scalar, role: StyleRole)] {
    let sorted = known.sorted()
    guard let low = sorted.first, let high = sorted.last else { return numbers.map { _ in ("?", .bad) } }
    let median = sorted[sorted.count / 2]
    let span = max(high - low, Self.minRange)
    return numbers.map { number in
      guard let number else { return ("?", .bad) }
      return (Glyphs.height((number - median) / span * 0.999 / 2 + 0.5), role(abs(number - median)))
    }
  }

  private func role(_ difference: Double) -> StyleRole {
    guard unit == "V" else { return .accent }
    return difference <= Self.good ? .good : difference <= Self.acceptable ? .warn : .bad
  }

  /// Volts with two places, so that the columns align.
  private static func fixed(_ number: Double, _ isVoltage: Bool) -> String {
    guard isVoltage, number >= 0 else { return Value.text(number) }
    let hundredths = Int((number * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
  }
}
