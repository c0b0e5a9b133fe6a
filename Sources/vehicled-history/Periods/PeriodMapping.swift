// Converts detected periods to rows of the store and to types of the contract. The figures are stored as the reply of the method Period;
// number, times and state are taken from the row when it is read. No I/O.

import HistoryStore
import Trips
import Varlink

/// Converts times of boots to wall-clock times.
struct TimeAxis: Sendable {
  var boots: [Int: Int64]

  /// Reads the offsets of the boots in the store.
  init(_ reader: HistoryReader) throws(HistoryError) {
    boots = Dictionary(try reader.allBoots().map { ($0.id, $0.offset) }) { first, _ in first }
  }

  /// The wall-clock time in µs.
  func wall(_ time: BootTime) -> Int64 { time.time &+ (boots[time.boot] ?? 0) }
}

enum PeriodMapping {
  /// The details of a detected period. `end` is the latest known time if the period is open.
  static func details(_ period: DetectedPeriod, device: String, zone: String, end: Int64) -> HistoryContract.PeriodMethod.Result {
    let figures = period.statistics
    var result = HistoryContract.Period(
      number: 0, device: device, kind: period.kind.rawValue, start: Int(period.start), end: Int(end), zone: zone, open: period.end == nil,
      marks: marks(period.marks), journey: period.journey.map { Int($0) })
    result.distance = quantity(figures.distance)
    if period.kind == .trip {
      result.drivenTime = seconds(figures.drivenTime)
      result.standingTime = seconds(figures.standingTime)
      result.unknownTime = seconds(figures.unknownTime)
    }
    result.maximumSpeed = figures.maxSpeed
    result.meanSpeed = figures.meanSpeed
    result.energy = quantity(figures.energy)
    result.regenerated = quantity(figures.regenerated)
    result.standingEnergy = figures.standingEnergy
    result.energyPer100Kilometres = quantity(figures.energyPer100Kilometres)
    result.fuel = quantity(figures.fuel)
    result.fuelPer100Kilometres = quantity(figures.fuelPer100Kilometres)
    (result.startStateOfCharge, result.endStateOfCharge) = (figures.stateOfCharge.start, figures.stateOfCharge.end)
    (result.startOdometer, result.endOdometer) = (figures.odometer.start, figures.odometer.end)
    (result.startFuelLevel, result.endFuelLevel) = (figures.fuelLevel.start, figures.fuelLevel.end)
    (result.startBatteryTemperature, result.endBatteryTemperature) = (figures.batteryTemperature.start, figures.batteryTemperature.end)
    (result.startOutdoorTemperature, result.endOutdoorTemperature) = (figures.outdoorTemperature.start, figures.outdoorTemperature.end)
    result.charged = quantity(figures.charged)
    result.maximumPower = figures.maxChargePower
    result.meanPower = figures.meanChargePower
    result.chargingTime = figures.chargingTime.map { seconds($0) }
    result.chargeType = figures.chargeType?.rawValue
    return HistoryContract.PeriodMethod.Result(
      period: result, pauses: period.pauses.map { HistoryContract.Pause(start: Int($0.start), end: Int($0.end)) },
      curve: figures.chargeCurve.map { HistoryContract.CurvePoint(stateOfCharge: $0.stateOfCharge, power: rounded($0.power)) })
  }

  /// The row of a detected period.
  static func row(
    _ details: HistoryContract.PeriodMethod.Result, kind: StoredPeriod.Kind, start: BootTime, end: BootTime
  ) -> StoredPeriod {
    let period = details.period
    var row = StoredPeriod(device: period.device, kind: kind, start: start, end: end, zone: period.zone)
    row.isOpen = period.open
    row.distance = period.distance?.value
    row.energy = kind == .charge ? period.charged?.value : period.energy?.value
    (row.startStateOfCharge, row.endStateOfCharge) = (period.startStateOfCharge, period.endStateOfCharge)
    (row.startOdometer, row.endOdometer) = (period.startOdometer, period.endOdometer)
    row.statistics = details.json
    return row
  }

  /// The details of a stored period.
  static func details(_ row: StoredPeriod, _ axis: TimeAxis) -> HistoryContract.PeriodMethod.Result {
    let stored = try? HistoryContract.PeriodMethod.Result(json: row.statistics)
    var result =
      stored
      ?? .init(
        period: .init(number: 0, device: "", kind: "", start: 0, end: 0, zone: "", open: false, marks: [], distance: nil), pauses: [],
        curve: [])
    let (start, end) = (axis.wall(row.start), axis.wall(row.end))
    // The clock may have been corrected since.
    let correction = stored.map { Int(start) - $0.period.start } ?? 0
    if correction != 0 {
      result.period.journey = result.period.journey.map { $0 + correction }
      result.pauses = result.pauses.map { .init(start: $0.start + correction, end: $0.end + correction) }
    }
    result.period.number = row.id
    result.period.device = row.device
    result.period.kind = row.kind.rawValue
    (result.period.start, result.period.end) = (Int(start), Int(max(start, end)))
    result.period.zone = row.zone
    result.period.open = row.isOpen
    result.period.marks.removeAll { $0 == frozenMark }
    if row.isFrozen { result.period.marks.append(frozenMark) }
    return result
  }

  private static let frozenMark = "frozen"

  private static func marks(_ marks: DetectedPeriod.Marks) -> [String] {
    let names: [(DetectedPeriod.Marks, String)] = [
      (.derived, "derived"), (.unrecorded, "unrecorded"), (.interrupted, "interrupted"), (.towed, "towed"),
      (.startUnknown, "start-unknown"), (.clockStep, "clock-step"),
    ]
    return names.filter { marks.contains($0.0) }.map(\.1)
  }

  private static func quantity(_ quantity: TripQuantity?) -> HistoryContract.Quantity? {
    guard let quantity, quantity.value.isFinite, quantity.bound.isFinite else { return nil }
    return HistoryContract.Quantity(value: rounded(quantity.value), bound: rounded(quantity.bound), source: quantity.source.rawValue)
  }

  private static func seconds(_ microseconds: Int64) -> Double { Double(microseconds) / 1e6 }

  /// The number rounded to six decimals, to hide the rounding errors of sums.
  private static func rounded(_ number: Double) -> Double { (number * 1e6).rounded() / 1e6 }
}
