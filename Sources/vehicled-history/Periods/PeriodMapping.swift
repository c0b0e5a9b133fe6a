// Converts detected periods to rows of the store and to types of the contract. The figures are stored as they are sent, because lists of
// periods can be long; number and device are added when they are read. No I/O.

import HistoryStore
import Protocols
import SQLite
import Trips
import Varlink

/// Converts times of boots to wall-clock times.
struct TimeAxis: Sendable {
  var boots: [Int: Int64]

  /// Reads the offsets of the boots in the store.
  init(_ reader: HistoryReader) throws(StoreError) {
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
    result.maximumSpeed = figures.maxSpeed.map(rounded)
    result.meanSpeed = figures.meanSpeed.map(rounded)
    result.energy = quantity(figures.energy)
    result.regenerated = quantity(figures.regenerated)
    result.standingEnergy = figures.standingEnergy.map(rounded)
    result.energyPer100Kilometres = quantity(figures.energyPer100Kilometres)
    result.fuel = quantity(figures.fuel)
    result.fuelPer100Kilometres = quantity(figures.fuelPer100Kilometres)
    (result.startStateOfCharge, result.endStateOfCharge) = (figures.stateOfCharge.start, figures.stateOfCharge.end)
    (result.startOdometer, result.endOdometer) = (figures.odometer.start, figures.odometer.end)
    (result.startFuelLevel, result.endFuelLevel) = (figures.fuelLevel.start, figures.fuelLevel.end)
    (result.startBatteryTemperature, result.endBatteryTemperature) = (figures.batteryTemperature.start, figures.batteryTemperature.end)
    (result.startOutdoorTemperature, result.endOutdoorTemperature) = (figures.outdoorTemperature.start, figures.outdoorTemperature.end)
    result.charged = quantity(figures.charged)
    result.maximumPower = figures.maxChargePower.map(rounded)
    result.meanPower = figures.meanChargePower.map(rounded)
    result.chargingTime = figures.chargingTime.map { seconds($0) }
    result.chargeType = figures.chargeType?.rawValue
    return HistoryContract.PeriodMethod.Result(
      period: result, pauses: period.pauses.map { HistoryContract.Pause(start: Int($0.start), end: Int($0.end)) },
      curve: figures.chargeCurve.map { HistoryContract.CurvePoint(stateOfCharge: $0.stateOfCharge, power: rounded($0.power)) })
  }

  /// What the method Period returns in addition to the figures that lists show.
  private struct Details: VarlinkParameters {
    enum CodingKeys: CodingKey, CaseIterable { case pauses, curve }
    var pauses: [HistoryContract.Pause]
    var curve: [HistoryContract.CurvePoint]
  }

  /// The row of a detected period.
  static func row(
    _ details: HistoryContract.PeriodMethod.Result, kind: StoredPeriod.Kind, start: BootTime, end: BootTime
  ) -> StoredPeriod {
    let period = details.period
    var row = StoredPeriod(device: period.device, kind: kind, start: start, end: end, zone: period.zone)
    row.isOpen = period.open
    if case .object(let members)? = JSON(period.json) {
      row.summary = JSON.object(members.filter { $0.key != "number" && $0.key != "device" }).text
    }
    row.summaryStart = Int64(period.start)
    row.details = Details(pauses: details.pauses, curve: details.curve).json
    return row
  }

  /// The summary of a stored period.
  static func summary(_ row: StoredPeriod, _ axis: TimeAxis) -> HistoryContract.Period { corrected(text(row), row, axis) }

  private static func text(_ row: StoredPeriod) -> String {
    "{\"number\":\(row.id),\"device\":\(JSON.string(row.device).text),\(row.summary.dropFirst())"
  }

  /// The details of a stored period.
  static func details(_ row: StoredPeriod, _ axis: TimeAxis) -> HistoryContract.PeriodMethod.Result {
    let details = try? Details(json: row.details)
    var result = HistoryContract.PeriodMethod.Result(
      period: corrected(text(row), row, axis), pauses: details?.pauses ?? [], curve: details?.curve ?? [])
    let correction = Int(axis.wall(row.start) - row.summaryStart)
    if correction != 0 {
      result.pauses = result.pauses.map { .init(start: $0.start + correction, end: $0.end + correction) }
    }
    return result
  }

  /// A summary with the current times and state of the row.
  private static func corrected(_ text: String, _ row: StoredPeriod, _ axis: TimeAxis) -> HistoryContract.Period {
    let (start, end) = (axis.wall(row.start), axis.wall(row.end))
    var period =
      (try? HistoryContract.Period(json: text))
      ?? .init(number: row.id, device: row.device, kind: "", start: 0, end: 0, zone: "", open: false, marks: [])
    // The clock may have been corrected since the period was stored.
    period.journey = period.journey.map { $0 + Int(start - row.summaryStart) }
    period.kind = row.kind.rawValue
    (period.start, period.end) = (Int(start), Int(max(start, end)))
    period.zone = row.zone
    period.open = row.isOpen
    period.marks.removeAll { $0 == frozenMark }
    if row.isFrozen { period.marks.append(frozenMark) }
    return period
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
