// The figures of a trip, charge or parked period in the units in which they are displayed. No I/O.

import Varlink

struct PeriodFigures {
  let period: HistoryContract.Period
  private let units: Units

  init(_ period: HistoryContract.Period, _ units: Units) { (self.period, self.units) = (period, units) }

  /// Below this consumption in kWh/100km, the vehicle is assumed to be a longboard or similar, and its energy is displayed in Wh.
  private static let smallConsumption = 5.0

  private var isSmall: Bool { period.energyPer100Kilometres.map { $0.value < Self.smallConsumption } ?? false }

  /// The duration in seconds.
  var duration: Double { Double(period.end - period.start) / 1e6 }

  var distance: Measure? { Measure(period.distance, "km")?.converted(to: units) }
  var energy: Measure? { energy(Measure(period.energy, "kWh", places: 2)) }
  var regenerated: Measure? { energy(Measure(period.regenerated, "kWh", places: 2)) }
  var standingEnergy: Measure? { energy(Measure(period.standingEnergy, "kWh", places: 2)) }
  var charged: Measure? { energy(Measure(period.charged, "kWh", places: 2)) }
  var fuel: Measure? { Measure(period.fuel, "L", places: 2)?.converted(to: units) }
  var fuelConsumption: Measure? { Measure(period.fuelPer100Kilometres, "L/100km")?.converted(to: units) }
  var maximumPower: Measure? { power(period.maximumPower) }
  var meanPower: Measure? { power(period.meanPower) }
  var maximumSpeed: Measure? { speed(period.maximumSpeed) }
  var meanSpeed: Measure? { speed(period.meanSpeed) }

  var consumption: Measure? {
    guard let measure = Measure(period.energyPer100Kilometres, "kWh/100km") else { return nil }
    return (isSmall ? measure.scaled(by: 10, "Wh/km", places: 1) : measure).converted(to: units)
  }

  private func energy(_ measure: Measure?) -> Measure? { isSmall ? measure?.scaled(by: 1000, "Wh", places: 0) : measure }
  private func power(_ kilowatts: Double?) -> Measure? { Measure(kilowatts, "kW") }
  private func speed(_ value: Double?) -> Measure? { Measure(value, "km/h", places: 0)?.converted(to: units) }

  /// The values at the start and end: `78 → 69`; nil if neither is known.
  static func change(_ start: Double?, _ end: Double?, places: Int = 0) -> String? {
    guard start != nil || end != nil else { return nil }
    return [start, end].map { $0.map { Format.fixed($0, places) } ?? "?" }.joined(separator: " → ")
  }

  /// The values at the start and end, such as of a temperature or the odometer, in the chosen units.
  func change(_ start: Double?, _ end: Double?, _ unit: String, places: Int = 0) -> String? {
    let ends = [start, end].map { Measure($0, unit, places: places)?.converted(to: units) }
    let shown = ends.lazy.compactMap { $0?.unit }.first ?? unit
    return Self.change(ends[0]?.value, ends[1]?.value, places: places).map { "\($0) \(shown)" }
  }

  var stateOfCharge: String? { Self.change(period.startStateOfCharge, period.endStateOfCharge) }
}

extension HistoryContract.Period {
  /// The meanings of the notes, in the order in which they are explained. A newer service can set marks that are not listed here.
  static let noteMeanings: KeyValuePairs = [
    "open": "not finished yet",
    "derived": "the vehicle provides no charging status: derived from the battery current",
    "unrecorded": "derived from the odometer or the state of charge, after a time without data",
    "interrupted": "data is missing for more than a minute",
    "towed": "the vehicle moved with the ignition off",
    "start-unknown": "recording started within it",
    "clock-step": "ended by a clock step",
    "frozen": "values have since been deleted, so it is not recomputed",
  ]

  /// `open` if the period is not finished, and its marks.
  var notes: [String] { (open ? ["open"] : []) + marks }
}
