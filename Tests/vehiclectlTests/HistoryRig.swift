// A scripted history service: two devices, trips and a charge, plots of a triangle with a spike and a gap, and samples.

import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

final class HistoryRig {
  let server: SocketServer
  var path: String { server.path }

  /// 2026-11-23 08:12 in Berlin, in µs.
  static let morning = 1_795_417_920_000_000
  static let minute = 60_000_000

  static let trip: HistoryContract.Period = {
    var trip = HistoryContract.Period(
      number: 12, device: "ev", kind: "trip", start: morning, end: morning + 42 * minute, zone: "Europe/Berlin", open: false,
      marks: ["interrupted"])
    trip.distance = .init(value: 31.4, bound: 0.1, source: "odometer")
    (trip.drivenTime, trip.standingTime, trip.unknownTime) = (2160, 360, 0)
    (trip.maximumSpeed, trip.meanSpeed) = (118, 52.3)
    trip.energy = .init(value: 5.621, bound: 0.1, source: "counters")
    trip.regenerated = .init(value: 1.31, bound: 0.1, source: "counters")
    trip.energyPer100Kilometres = .init(value: 17.9, bound: 0.38, source: "counters")
    (trip.startStateOfCharge, trip.endStateOfCharge) = (78, 69)
    (trip.startOdometer, trip.endOdometer) = (18204.3, 18235.7)
    (trip.startBatteryTemperature, trip.endBatteryTemperature) = (14, 22)
    return trip
  }()

  static let openTrip: HistoryContract.Period = {
    var trip = HistoryContract.Period(
      number: 14, device: "ev", kind: "trip", start: morning + 600 * minute, end: morning + 605 * minute, zone: "Europe/Berlin", open: true,
      marks: [])
    trip.distance = .init(value: 2.1, bound: 0.1, source: "odometer")
    (trip.startStateOfCharge, trip.endStateOfCharge) = (80, 79)
    return trip
  }()

  static let ride: HistoryContract.Period = {
    var ride = HistoryContract.Period(
      number: 13, device: "board", kind: "trip", start: morning + 300 * minute, end: morning + 322 * minute, zone: "Europe/London",
      open: false, marks: [])
    ride.distance = .init(value: 9.2, bound: 0.1, source: "odometer")
    ride.energy = .init(value: 0.131, bound: 0.002, source: "counters")
    ride.energyPer100Kilometres = .init(value: 1.42, bound: 0.03, source: "counters")
    return ride
  }()

  static let charge: HistoryContract.Period = {
    var charge = HistoryContract.Period(
      number: 15, device: "ev", kind: "charge", start: morning + 60 * minute, end: morning + 101 * minute, zone: "Europe/Berlin",
      open: false, marks: ["derived"])
    charge.charged = .init(value: 32.1, bound: 0.1, source: "counters")
    (charge.startStateOfCharge, charge.endStateOfCharge) = (24, 80)
    (charge.maximumPower, charge.meanPower, charge.chargingTime, charge.chargeType) = (76.2, 48.1, 2400, "dc")
    return charge
  }()

  static let series = [
    HistoryContract.Series(id: 1, device: "ev", property: "speed", type: "float", unit: "km/h"),
    HistoryContract.Series(id: 2, device: "ev", property: "gear", type: "string"),
    HistoryContract.Series(id: 3, device: "ev", property: "rpm", type: "int", unit: "rpm"),
    HistoryContract.Series(id: 4, device: "gps", property: "latitude", type: "float", unit: "°"),
    HistoryContract.Series(id: 5, device: "gps", property: "longitude", type: "float", unit: "°"),
    HistoryContract.Series(id: 6, device: "gps", property: "altitude", type: "float", unit: "m"),
  ]

  /// Samples of `ev` and `gps`, in seconds after `morning`.
  static func samples(_ device: String) -> [HistoryContract.Sample] {
    let second = { (seconds: Int) in morning + seconds * 1_000_000 }
    if device == "gps" {
      return [0, 1, 2, 40].flatMap { at -> [HistoryContract.Sample] in
        [
          .init(series: 4, time: second(at), value: .float(52.5 + Double(at) / 10_000)),
          .init(series: 5, time: second(at), value: .float(13.4)), .init(series: 6, time: second(at), value: .float(34.5)),
        ]
      } + [.init(series: 4, time: second(41), reason: "no fix"), .init(series: 5, time: second(41), reason: "no fix")]
    }
    return [
      .init(series: 1, time: second(0), value: .float(50)), .init(series: 2, time: second(0), value: .string("d, \"sport\"")),
      .init(series: 3, time: second(0), value: .int(3308)), .init(series: 1, time: second(1) + 250_000, value: .float(50.4)),
      .init(series: 1, time: second(2), reason: "stale"), .init(series: 3, time: second(2), value: .int(-10)),
    ]
  }

  init() throws {
    let recorded = Recorded()
    server = try SocketServer { connection, method, parameters in Self.answer(connection, method, parameters, recorded) }
    self.recorded = recorded
  }

  private let recorded: Recorded

  /// The calls of methods that change something.
  final class Recorded: Sendable { let calls = Mutex([JSON]()) }

  var changes: [JSON] { recorded.calls.withLock { $0 } }

  func stop() { server.stop() }

  /// Runs vehiclectl against it.
  func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Program.Outcome {
    try Program.run(
      arguments, environment: ["VEHICLED_HISTORY_SOCKET": path, "TZ": "Europe/Berlin", "COLUMNS": "80"].merging(environment) { $1 })
  }

  private static func answer(_ connection: Int32, _ method: String, _ parameters: JSON, _ recorded: Recorded) -> Answer {
    let number = { (key: String) -> Int? in if case .int(let number)? = parameters[key] { number } else { nil } }
    switch method {
    case HistoryContract.StatusMethod.name:
      return .send(
        VarlinkReply.message(
          HistoryContract.StatusMethod.Result(
            recording: false, reason: "vehicled is not running", size: 1_234_567, limit: 8_000_000_000, first: morning,
            last: morning + minute, devices: ["ev", "gps"], dropped: 2)))
    case HistoryContract.SeriesMethod.name:
      let device = parameters["device"]?.string
      return .send(
        VarlinkReply.message(HistoryContract.SeriesMethod.Result(series: series.filter { device == nil || $0.device == device })))
    case HistoryContract.PeriodsMethod.name:
      let all = [trip, charge, ride, openTrip].filter { period in
        parameters["kind"]?.string.map { $0 == period.kind } ?? true && parameters["device"]?.string.map { $0 == period.device } ?? true
          && period.end >= number("start") ?? .min
      }
      let found = Array(all.suffix(number("limit") ?? .max))
      // A long list is sent in several replies.
      let first =
        found.dropLast().isEmpty ? [] : VarlinkReply.message(HistoryContract.PeriodsMethod.Result(periods: [found[0]]), continues: true)
      return .send(
        first + VarlinkReply.message(HistoryContract.PeriodsMethod.Result(periods: Array(first.isEmpty ? found[...] : found[1...]))))
    case HistoryContract.PeriodMethod.name:
      guard let period = [trip, charge, ride, openTrip].first(where: { $0.number == number("number") }) else {
        return .send(VarlinkReply.message(error: HistoryContractError.noSuchPeriod(number: number("number") ?? 0)))
      }
      let curve = (24...80).map { HistoryContract.CurvePoint(stateOfCharge: $0, power: $0 < 60 ? 76 : 76 - Double($0 - 60) * 2) }
      return .send(
        VarlinkReply.message(
          HistoryContract.PeriodMethod.Result(
            period: period, pauses: [.init(start: morning + 19 * minute, end: morning + 24 * minute)],
            curve: period.kind == "charge" ? curve : [])))
    case HistoryContract.PlotMethod.name:
      let (start, end, count) = (number("start") ?? 0, number("end") ?? 0, number("points") ?? 1)
      let points = (0..<count).compactMap { index -> HistoryContract.PlotPoint? in
        // The spike is narrower than a dot.
        let value = index == count / 4 ? 200.0 : Double(index * 100 / count)
        if (count / 2..<count * 6 / 10).contains(index) { return nil }
        return .init(index: index, minimum: value, maximum: value, mean: value, last: value)
      }
      return .send(
        VarlinkReply.message(
          HistoryContract.PlotMethod.Result(start: start, width: (end - start + count) / count, unit: "km/h", points: points, damage: [])))
    case HistoryContract.SamplesMethod.name:
      let device = parameters["device"]?.string ?? ""
      var wanted = series.filter { $0.device == device }
      if case .array(let names)? = parameters["properties"] { wanted = wanted.filter { names.contains(.string($0.property)) } }
      let samples = samples(device).filter { sample in wanted.contains { $0.id == sample.series } }
      let result = { HistoryContract.SamplesMethod.Result(series: $0, samples: $1, progress: 0.5) }
      let parts = [result(wanted, nil), result(nil, Array(samples.prefix(2))), result(nil, Array(samples.dropFirst(2)))]
      return .send(
        parts.flatMap { VarlinkReply.message($0, continues: true) }
          + VarlinkReply.message(HistoryContract.SamplesMethod.Result(damage: ["block 7 of ev: checksum mismatch"])))
    case HistoryContract.CheckMethod.name:
      let last = HistoryContract.CheckMethod.Result(progress: 1, blocks: 9, damage: ["block 7 of ev: checksum mismatch"])
      return .send(VarlinkReply.message(HistoryContract.CheckMethod.Result(progress: 0.5), continues: true) + VarlinkReply.message(last))
    case HistoryContract.CompactMethod.name:
      return .send(VarlinkReply.message(HistoryContract.CompactMethod.Result(size: 1_200_000, damage: [])))
    case HistoryContract.RecutMethod.name:
      return .send(VarlinkReply.message(HistoryContract.RecutMethod.Result(periods: 412)))
    case HistoryContract.DeleteMethod.name:
      recorded.calls.withLock { $0.append(parameters) }
      return .send(VarlinkReply.message(HistoryContract.DeleteMethod.Result(damage: [])))
    case HistoryContract.RenameMethod.name:
      recorded.calls.withLock { $0.append(parameters) }
      return .send(VarlinkReply.message(NoParameters()))
    case HistoryContract.ImportMethod.name:
      recorded.calls.withLock { $0.append(parameters) }
      return .send(VarlinkReply.message(HistoryContract.ImportMethod.Result(samples: 6)))
    default: return .sendAndClose([])
    }
  }
}
