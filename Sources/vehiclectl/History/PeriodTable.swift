// A table of trips, charges or parked periods that fits the width of the terminal. If the terminal is too narrow, the table first omits
// bounds, then prints notes as footnotes, and so on (see `Detail.all`). No I/O: the current time and the local zone are arguments.

import Varlink

struct PeriodTable {
  enum Kind: String {
    case trip, charge, parking

    /// The noun for one period, in the singular.
    var noun: String { self == .parking ? "parked period" : rawValue }
  }

  /// A column. If all values share a unit, the title contains it; otherwise each cell does.
  private struct Column {
    var title: String
    var isRight = true
    var values: [(text: String, unit: String?)?]
    /// Whether a shared unit replaces the title instead of following it.
    var isNamedByUnit = false

    var cells: (title: String, texts: [String]) {
      let units = Set(values.compactMap { $0?.unit })
      guard units.count <= 1 else { return (title, values.map { $0.map { "\($0.text) \($0.unit ?? "")" } ?? "" }) }
      let unit = units.first
      return (unit.map { isNamedByUnit ? $0 : "\(title) \($0)" } ?? title, values.map { $0?.text ?? "" })
    }
  }

  /// The level of detail. The first of `all` that fits the width is used.
  private struct Detail {
    var hasBounds = false
    /// Whether notes have a column of their own; otherwise they are footnotes.
    var hasNotes = false
    /// Whether electric energy and fuel share columns, and dates and durations are short.
    var isCompact = false
    var hasStateOfCharge = true
    /// Whether there are powers and consumption, which follow from the other columns.
    var hasRates = true
    static let all = [
      Detail(hasBounds: true, hasNotes: true), Detail(hasNotes: true), Detail(hasBounds: true), Detail(), Detail(isCompact: true),
      Detail(isCompact: true, hasStateOfCharge: false), narrow,
    ]
    static let narrow = Detail(isCompact: true, hasStateOfCharge: false, hasRates: false)
  }

  private let kind: Kind
  private let periods: [PeriodFigures]
  private let now: Double
  private let local: Zone
  private let zones: [String: Zone]

  /// Creates a table of these periods, in this order.
  init(_ kind: Kind, _ periods: [HistoryContract.Period], _ units: Units, now: Double, local: Zone) {
    self.kind = kind
    self.periods = periods.map { PeriodFigures($0, units) }
    (self.now, self.local) = (now, local)
    zones = Dictionary(Set(periods.map(\.zone)).map { ($0, Zone(named: $0) ?? .utc) }, uniquingKeysWith: { first, _ in first })
  }

  /// The lines, at most this wide if possible.
  func lines(width: Int, paint: (String, Style) -> String) -> [String] { table(detail(width: width)).lines(paint: paint) }

  private func detail(width: Int) -> Detail {
    Detail.all.first { detail in table(detail).lines().allSatisfy { $0.displayWidth <= width } } ?? .narrow
  }

  /// The totals, then the notes that occur, with their meanings.
  func legend(width: Int, paint: (String, Style) -> String) -> [String] {
    let isNumbered = !detail(width: width).hasNotes
    let meanings = HistoryContract.Period.noteMeanings
    let explained = notes.enumerated().flatMap { index, note -> [String] in
      let name = isNumbered ? "\(Self.footnotes[index % Self.footnotes.count]) \(note)" : note
      return "\(name): \(meanings.first { $0.key == note }?.value ?? "unknown to this version of vehiclectl; update it")".wrapped(to: width)
    }
    return [totals] + explained.map { paint($0, .dim) }
  }

  private static let footnotes = ["¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"]

  /// The notes that occur, in the order of their meanings.
  private var notes: [String] {
    let used = Set(periods.flatMap(\.period.notes))
    let known = HistoryContract.Period.noteMeanings.map(\.key)
    return known.filter(used.contains) + used.subtracting(known).sorted()
  }

  private var totals: String {
    let count = periods.count
    let plural = count == 1 ? kind.noun : "\(kind.noun)s"
    let seconds = periods.reduce(0) { $0 + $1.duration }
    var sums = ["\(count) \(plural)", Format.span(seconds)]
    switch kind {
    case .trip: sums += [sum(periods.map(\.distance)), sum(periods.map(\.energy)), sum(periods.map(\.fuel))].compactMap(\.self)
    case .charge: sums += [sum(periods.map(\.charged))].compactMap(\.self)
    case .parking: break
    }
    return sums[0] + ": " + sums.dropFirst().joined(separator: ", ")
  }

  /// The sum of the known measures with its unit; nil if their units cannot be added or there are none.
  private func sum(_ measures: [Measure?]) -> String? {
    let known = measures.compactMap(\.self)
    guard let first = known.first else { return nil }
    // The energy of boards is in Wh, that of cars in kWh.
    let isMixed = Set(known.map(\.unit)) == ["Wh", "kWh"]
    guard isMixed || known.allSatisfy({ $0.unit == first.unit }) else { return nil }
    let total = known.reduce(0) { $0 + (isMixed && $1.unit == "Wh" ? $1.value / 1000 : $1.value) }
    return "\(Format.fixed(total, 1)) \(isMixed ? "kWh" : first.unit)"
  }

  private func table(_ detail: Detail) -> Table {
    let figures = { (title: String, measure: (PeriodFigures) -> Measure?) in
      Column(
        title: title, values: periods.map { measure($0).map { ($0.text(withBound: detail.hasBounds), $0.unit) } }, isNamedByUnit: true)
    }
    let plain = { (title: String, isRight: Bool, text: (PeriodFigures) -> String?) in
      Column(title: title, isRight: isRight, values: periods.map { text($0).map { ($0, nil) } })
    }
    let named = { (title: String, measure: (PeriodFigures) -> Measure?) in
      Column(title: title, values: periods.map { measure($0).map { ($0.text(withBound: false), $0.unit) } })
    }
    var columns = [plain(kind.rawValue, true) { number($0, isMarked: !detail.hasNotes) }]
    if Set(periods.map(\.period.device)).count > 1 { columns.append(plain("device", false) { $0.period.device }) }
    columns.append(plain("start", true) { start($0.period, hasWeekday: !detail.isCompact) })
    columns.append(plain("time", true) { detail.isCompact ? Self.clock($0.duration) : Format.span($0.duration) })
    let stateOfCharge = plain("SoC %", true, \.stateOfCharge)
    switch kind {
    case .trip:
      columns.append(figures("distance") { $0.distance?.withoutBound })
      if detail.isCompact {
        columns.append(figures("used") { $0.energy ?? $0.fuel })
        if detail.hasRates {
          columns.append(figures("consumption") { ($0.energy == nil ? $0.fuelConsumption : $0.consumption)?.withoutBound })
        }
      } else {
        columns += [figures("energy", \.energy), figures("consumption") { $0.consumption?.withoutBound }]
        columns += [figures("fuel", \.fuel), figures("consumption") { $0.fuelConsumption?.withoutBound }]
      }
      if detail.hasStateOfCharge { columns.append(stateOfCharge) }
    case .charge:
      columns += [figures("charged", \.charged), stateOfCharge]
      if detail.hasRates { columns += [named("max", \.maximumPower), named("mean", \.meanPower)] }
      columns.append(plain("type", false) { $0.period.chargeType?.uppercased() })
    case .parking:
      columns += [stateOfCharge, figures("energy", \.energy)]
    }
    if detail.hasNotes { columns.append(plain("notes", false) { $0.period.notes.joined(separator: ", ") }) }
    let cells = columns.map(\.cells)
    var table = Table(titles: cells.map(\.title), rows: [])
    table.alignments = columns.map { $0.isRight ? .right : .left }
    table.rows = periods.indices.map { row in
      cells.map { Cell($0.texts[row], periods[row].period.open ? .good : .plain) }
    }
    return table
  }

  private func number(_ figures: PeriodFigures, isMarked: Bool) -> String {
    let marks = isMarked ? figures.period.notes.compactMap { notes.firstIndex(of: $0) }.sorted() : []
    return "\(figures.period.number)" + marks.map { Self.footnotes[$0 % Self.footnotes.count] }.joined()
  }

  /// `Mon 23 Nov 08:12`, or `23 Nov 2025 08:12` in another year. The zone follows if its time differs from that of this computer.
  private func start(_ period: HistoryContract.Period, hasWeekday: Bool) -> String {
    let time = CivilTime(period.start, in: zones[period.zone] ?? .utc)
    let here = CivilTime(period.start, in: local)
    let isThisYear = time.year == CivilTime(Int(now) * 1_000_000, in: local).year
    let day = isThisYear ? hasWeekday ? time.weekdayAndDay : time.dayAndMonth : "\(time.dayAndMonth) \(time.year)"
    return "\(day) \(time.clock)" + (time.offset == here.offset ? "" : " \(time.abbreviation)")
  }

  /// Hours and minutes: `1:35`.
  private static func clock(_ seconds: Double) -> String {
    let minutes = Int((seconds / 60).rounded())
    return "\(minutes / 60):\(String(100 + minutes % 60).dropFirst())"
  }
}

extension Measure {
  fileprivate var withoutBound: Measure {
    var measure = self
    measure.bound = 0
    return measure
  }
}

extension HistoryContract.Period {
  /// The noun for its kind: trip, charge, parked period.
  var noun: String { PeriodTable.Kind(rawValue: kind)?.noun ?? kind }
}
