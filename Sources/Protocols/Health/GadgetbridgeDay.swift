// The day of one device as an export has it: chosen among the devices and tables that the export holds. It must never add up two
// tables of one device: they tell of the same steps.

/// What one device says of a day.
struct GadgetbridgeDay: Sendable, Equatable {
  /// Its name, fit to be shown.
  var device: String
  var day: Int
  /// Its newest sample, in microseconds since the Unix epoch.
  var newest: Int64
  /// Of that day; absent where there is no sample of it, or the device does not record it.
  var sums: [HealthMetric: Double] = [:]
  /// Its newest heart rate, of whatever day.
  var heart: (number: Double, micros: Int64)?
  private var recorded: Set<HealthMetric> = [.steps]

  /// Whether the device records this at all.
  func has(_ metric: HealthMetric) -> Bool { recorded.contains(metric) }

  static func == (one: Self, other: Self) -> Bool {
    one.device == other.device && one.day == other.day && one.newest == other.newest && one.sums == other.sums
      && one.heart?.micros == other.heart?.micros && one.heart?.number == other.heart?.number
  }

  /// One row: what a table has of a device.
  private struct Part {
    var table: GadgetbridgeTable
    var id: String
    var names: [String]
    var newest: Double
    var row: [Value?]

    init?(_ row: [Value?], of tables: [GadgetbridgeTable]) {
      guard row.count == 10, case .int(let number)? = row[0], tables.indices.contains(number), let newest = row[4]?.number,
        newest.isFinite
      else {
        return nil
      }
      (table, self.row, self.newest) = (tables[number], row, newest)
      id = row[1]?.text ?? "?"
      names = [row[3], row[2]].compactMap { if case .string(let name)? = $0 { GadgetbridgeDay.clean(name) } else { nil } }
        .filter { !$0.isEmpty }
    }

    var name: String { names.first ?? "device \(GadgetbridgeDay.clean(id))" }

    func isBetter(than other: Part) -> Bool {
      table.isSummary != other.table.isSummary ? !table.isSummary : newest > other.newest
    }
  }

  /// Chooses among the rows that answer `GadgetbridgeTable.sums`: the device of this name, else the one with the newest sample.
  init(_ rows: [[Value?]], of tables: [GadgetbridgeTable], device wanted: String?, day: Int) throws(ValueError) {
    var parts: [String: Part] = [:]
    for part in rows.compactMap({ Part($0, of: tables) }) {
      if let known = parts[part.id], !part.isBetter(than: known) { continue }
      parts[part.id] = part
    }
    let all = parts.values.sorted { ($1.newest, $0.id) < ($0.newest, $1.id) }
    let meant = wanted.map { wanted in
      all.filter { part in [part.name, part.names.last ?? ""].contains { $0.lowercased() == Self.clean(wanted).lowercased() } }
    }
    guard let part = (meant ?? all).first else {
      guard let wanted, !all.isEmpty else {
        throw ValueError("Gadgetbridge's database has no sample of any device: synchronise the device, and export again")
      }
      let others = all.prefix(6).map(\.name).joined(separator: ", ")
      throw ValueError("Gadgetbridge has no samples of a device \"\(Self.clean(wanted))\": it has those of \(others)")
    }
    device = part.name
    self.day = day
    newest = Self.micros(part.newest)
    let hasToday = (part.row[5]?.number ?? 0) > 0
    for (metric, column) in [(HealthMetric.steps, 6), (.distance, 7), (.activeEnergy, 8)] {
      guard let number = part.row[column]?.number else { continue }
      recorded.insert(metric)
      if hasToday { sums[metric] = metric == .distance ? number.rounded() / 1000 : number }
    }
    if part.table.columns["HEART_RATE"] != nil { recorded.insert(.heartRate) }
    if case .int(let code)? = part.row[9], code > 0 {
      heart = (Double(code % 1000), Self.micros(Double(code / 1000)))
    }
  }

  private static func micros(_ seconds: Double) -> Int64 { Int64(min(max(seconds, 0), 1e11) * 1e6) }

  /// A name that neither drives a terminal nor drowns a sentence.
  static func clean(_ name: String) -> String {
    var clean = ""
    for scalar in name.unicodeScalars.prefix(40) {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate: continue
      default: clean.unicodeScalars.append(scalar)
      }
    }
    return clean
  }
}
