// The totals of one device on one day, selected from the devices and tables of an export. The totals of a device in two tables must not
// be added, because both tables count the same steps.

/// The totals of one device on one day.
struct GadgetbridgeDay: Sendable, Equatable {
  /// The device's name, without control characters.
  var device: String
  var day: Int
  /// The time of the device's newest sample, in microseconds since the Unix epoch.
  var newest: Int64
  /// The totals of the day. A metric is absent if there is no sample of that day, or the device does not record the metric.
  var totals: [HealthMetric: Double] = [:]
  /// The newest heart rate in bpm, of any day, and its time in microseconds since the Unix epoch.
  var heartRate: (number: Double, micros: Int64)?
  private var recorded: Set<HealthMetric> = [.steps]

  /// Whether the device records this metric at all.
  func records(_ metric: HealthMetric) -> Bool { recorded.contains(metric) }

  static func == (lhs: Self, rhs: Self) -> Bool {
    lhs.device == rhs.device && lhs.day == rhs.day && lhs.newest == rhs.newest && lhs.totals == rhs.totals
      && lhs.heartRate?.micros == rhs.heartRate?.micros && lhs.heartRate?.number == rhs.heartRate?.number
  }

  /// One row of the result of `GadgetbridgeTable.totalsQuery`, which defines the columns: the totals of one device in one table.
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

  /// Selects a device from the result of `GadgetbridgeTable.totalsQuery`: the device with this name, or the device with the newest sample.
  init(_ rows: [[Value?]], of tables: [GadgetbridgeTable], device selected: String?, day: Int) throws(ValueError) {
    var parts: [String: Part] = [:]
    for part in rows.compactMap({ Part($0, of: tables) }) {
      if let known = parts[part.id], !part.isBetter(than: known) { continue }
      parts[part.id] = part
    }
    let all = parts.values.sorted { ($1.newest, $0.id) < ($0.newest, $1.id) }
    let matching = selected.map { selected in
      all.filter { part in [part.name, part.names.last ?? ""].contains { $0.lowercased() == Self.clean(selected).lowercased() } }
    }
    guard let part = (matching ?? all).first else {
      guard let selected, !all.isEmpty else {
        throw ValueError("no samples in Gadgetbridge's database: synchronise the device and export again")
      }
      let others = all.prefix(6).map(\.name).joined(separator: ", ")
      throw ValueError("no samples of device \"\(Self.clean(selected))\" in Gadgetbridge's database: it has \(others)")
    }
    device = part.name
    self.day = day
    newest = Self.micros(part.newest)
    let hasSamplesToday = (part.row[5]?.number ?? 0) > 0
    for (metric, column) in [(HealthMetric.steps, 6), (.distance, 7), (.activeEnergy, 8)] {
      guard let number = part.row[column]?.number else { continue }
      recorded.insert(metric)
      if hasSamplesToday { totals[metric] = metric == .distance ? number.rounded() / 1000 : number }
    }
    if part.table.columns["HEART_RATE"] != nil { recorded.insert(.heartRate) }
    if case .int(let code)? = part.row[9], code > 0 {
      heartRate = (Double(code % 1000), Self.micros(Double(code / 1000)))
    }
  }

  private static func micros(_ seconds: Double) -> Int64 { Int64(min(max(seconds, 0), 1e11) * 1e6) }

  /// A device's name without control characters, truncated.
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
