// The details of one trip, charge or parked period as lines: the most important figures first, with their bounds and sources. No I/O.

import Varlink

struct PeriodDetail {
  private let result: HistoryContract.PeriodMethod.Result
  private let figures: PeriodFigures
  private let zone: Zone
  private var period: HistoryContract.Period { result.period }

  init(_ result: HistoryContract.PeriodMethod.Result, _ units: Units) {
    self.result = result
    figures = PeriodFigures(result.period, units)
    zone = Zone(named: result.period.zone) ?? .utc
  }

  /// All lines, at most this wide.
  func lines(width: Int, paint: (String, Style) -> String) -> [String] {
    let table = Table(titles: ["", "", ""], rows: rows.map { [Cell($0.name, .dim), Cell($0.value, .bold), Cell($0.note)] })
    var lines = [paint("\(period.noun) \(period.number) of \(Output.oneLine(period.device))", .bold) + "  \(span)"]
    if period.open { lines[0] += paint("  open", .good) }
    lines += [""] + table.lines(width: width, paint: paint)
    if !result.curve.isEmpty { lines += [""] + curve(width: width, paint) }
    lines += period.notes.flatMap { note -> [String] in
      let meaning =
        HistoryContract.Period.noteMeanings.first { $0.key == note }?.value
        ?? "unknown to this version of vehiclectl; update it"
      return [""] + "\(note): \(meaning)".wrapped(to: width).map { paint($0, .dim) }
    }
    return lines
  }

  private typealias Row = (name: String, value: String, note: String)

  /// The known figures.
  private var rows: [Row] {
    switch period.kind {
    case "trip": tripRows + commonRows
    case "charge": chargeRows + commonRows
    default: commonRows
    }
  }

  private var tripRows: [Row] {
    var rows: [Row] = []
    if let distance = figures.distance { rows.append(("distance", distance.description, Self.source(period.distance))) }
    let parts = [("driven", period.drivenTime), ("standing", period.standingTime), ("without data", period.unknownTime)]
    let times = parts.compactMap { name, time in time.flatMap { $0 >= 1 ? "\(name) \(Format.span($0))" : nil } }
    rows.append(("duration", Format.span(figures.duration), times.joined(separator: ", ")))
    if let energy = figures.energy {
      let regenerated = figures.regenerated.map { ", \($0.description) regenerated" } ?? ""
      let standing = figures.standingEnergy.map { $0.isZero ? "" : ", \($0.description) while standing" } ?? ""
      rows.append(("energy", energy.description, Self.source(period.energy) + regenerated + standing))
    }
    if let consumption = figures.consumption { rows.append(("consumption", consumption.description, "")) }
    if let fuel = figures.fuel { rows.append(("fuel", fuel.description, Self.source(period.fuel))) }
    if let consumption = figures.fuelConsumption { rows.append(("consumption", consumption.description, "")) }
    if let mean = figures.meanSpeed, let top = figures.maximumSpeed {
      rows.append(("speed", "mean \(mean.text()), max \(top.description)", ""))
    } else if let top = figures.maximumSpeed {
      rows.append(("speed", "max \(top.description)", ""))
    }
    return rows
  }

  private var chargeRows: [Row] {
    var rows: [Row] = []
    if let charged = figures.charged { rows.append(("charged", charged.description, Self.source(period.charged))) }
    let time = period.chargingTime.map { "charging \(Format.span($0))" } ?? ""
    rows.append(("duration", Format.span(figures.duration), time))
    let power = [("max", figures.maximumPower), ("mean", figures.meanPower)].compactMap { name, power in
      power.map { "\(name) \($0.description)" }
    }
    if !power.isEmpty { rows.append(("power", power.joined(separator: ", "), "")) }
    if let type = period.chargeType { rows.append(("type", type.uppercased(), "")) }
    return rows
  }

  /// The figures that all kinds have.
  private var commonRows: [Row] {
    var rows: [Row] = []
    func add(_ name: String, _ text: String?) { if let text { rows.append((name, text, "")) } }
    if period.kind == "parking" {
      add("duration", Format.span(figures.duration))
      add("energy", figures.energy?.description)
    }
    add("state of charge", figures.stateOfCharge.map { "\($0) %" })
    add("fuel level", PeriodFigures.change(period.startFuelLevel, period.endFuelLevel).map { "\($0) %" })
    add("odometer", figures.change(period.startOdometer, period.endOdometer, "km", places: 1))
    add("battery", figures.change(period.startBatteryTemperature, period.endBatteryTemperature, "°C"))
    add("outdoor", figures.change(period.startOutdoorTemperature, period.endOutdoorTemperature, "°C"))
    for (index, pause) in result.pauses.enumerated() {
      let length = Format.span(Double(pause.end - pause.start) / 1e6)
      rows.append((index == 0 ? "pauses" : "", "\(clock(pause.start))–\(clock(pause.end))", length))
    }
    return rows
  }

  /// `Mon 23 Nov 2026 08:12–08:54 CET`; with both days if the period ends on a different day.
  private var span: String {
    let (start, end) = (CivilTime(period.start, in: zone), CivilTime(period.end, in: zone))
    let isOneDay = (start.year, start.month, start.day) == (end.year, end.month, end.day)
    let last = isOneDay ? end.clock : "\(end.weekdayAndDay) \(end.clock)"
    return "\(start.weekdayAndDay) \(start.year) \(start.clock)\(isOneDay ? "" : " ")–\(isOneDay ? "" : " ")\(last) \(end.abbreviation)"
  }

  private func clock(_ microseconds: Int) -> String { CivilTime(microseconds, in: zone).clock }

  private static func source(_ quantity: HistoryContract.Quantity?) -> String {
    quantity.map { "from \($0.source.replacing("-", with: " "))" } ?? ""
  }

  /// The charge curve: power against state of charge.
  private func curve(width: Int, _ paint: (String, Style) -> String) -> [String] {
    let first = result.curve.map(\.stateOfCharge).min() ?? 0
    let last = result.curve.map(\.stateOfCharge).max() ?? 0
    let points = result.curve.map { point in
      PlotPoint(minimum: point.power, maximum: point.power, mean: point.power, last: point.power, index: point.stateOfCharge - first)
    }
    let series = PlotSeries(name: "power into the battery", unit: "kW", start: Double(first), width: 1, points: points)
    let plot = Plot(
      panels: [PlotPanel([series], includesZero: true, hasSummary: false)], axis: .number("%"), range: Double(first)...Double(last + 1),
      title: nil)
    return plot.grid(columns: min(width, 80), rows: 12).lines { text, role in paint(text, role.style) }
  }
}
