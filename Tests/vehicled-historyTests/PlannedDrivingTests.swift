// Planned driving through the whole path: the machine and the simulated car in virtual time, import, merging, detection. The trips and
// charges that are found are those of the plan, and those that the recordings of the golden set state.

import Foundation
import HistoryStore
import Peers
import Protocols
import SampleBlocks
import Testing
import Trips
import Varlink

@testable import vehicled_history

@Suite final class PlannedDrivingTests {
  /// A store in a directory of its own.
  private final class Recorded {
    private let path = NSTemporaryDirectory() + "history-\(UUID().uuidString)"
    let store: HistoryStore

    init() throws { store = try HistoryStore(directory: path) }
    deinit { try? FileManager.default.removeItem(atPath: path) }

    func add(_ bytes: [UInt8], _ series: [Int: SeriesKey], continues: Bool) throws {
      let block = ImportedBlock(device: "ev", source: "plan", series: series, block: try Block(bytes), continues: continues)
      #expect(try store.add(block) > 0)
    }

    /// The periods that are found in it.
    func periods(at end: Int64?) throws -> [DetectedPeriod] {
      try store.compact()
      #expect(try store.reader.check().damage == [])
      var replay = PeriodReplay(rules: PeriodRules())
      try replay.read(store.reader, device: "ev", in: .min ... .max)
      return replay.finish(at: end ?? replay.end)
    }
  }

  /// A detector that receives each sample when it is published, and its periods.
  private var direct = PeriodDetector(rules: PeriodRules())
  private var directPeriods: [Int: DetectedPeriod] = [:]
  private var latest = Int64.min

  private func addDirectly(_ sample: PlannedRecording.Sample, of series: PlannedRecording.Series) {
    let key = SeriesKey(device: "ev", property: series.property, type: series.type, unit: series.unit)
    guard let signal = PeriodReplay.signal(key) else { return }
    // Values that are published together need not be in the order of their measurement.
    latest = max(latest, sample.time / 1000)
    apply(direct.add(signal.sample(sample.content, at: latest)))
  }

  private func apply(_ changes: [Change]) {
    for change in changes {
      switch change {
      case .stored(let period): directPeriods[period.id] = period
      case .removed(let id): directPeriods[id] = nil
      }
    }
  }

  /// Checks that periods read from blocks are those of the detector that received each sample.
  private func checkDirect(_ periods: [DetectedPeriod], at end: Int64, _ name: String) {
    apply(direct.advance(to: end))
    apply(direct.finish())
    let others = directPeriods.values.sorted { ($0.start, $0.id) < ($1.start, $1.id) }
    #expect(periods.map(\.kind) == others.map(\.kind), "\(name)")
    func isNear(_ one: Double?, _ other: Double?) -> Bool {
      (one == nil) == (other == nil) && abs((one ?? 0) - (other ?? 0)) <= 1e-3 + 1e-3 * abs(one ?? 0)
    }
    for (one, other) in zip(periods, others) {
      // The motor may show motion a moment before the speed does.
      #expect(
        abs(one.start - other.start) <= 2_000_000 && abs((one.end ?? 0) - (other.end ?? 0)) <= 2_000_000,
        "\(name): \(one.kind) \(one.start)-\(one.end ?? 0) instead of \(other.start)-\(other.end ?? 0)")
      #expect(one.marks == other.marks, "\(name)")
      let (left, right) = (one.statistics, other.statistics)
      #expect(isNear(left.energy?.value, right.energy?.value) && isNear(left.charged?.value, right.charged?.value), "\(name)")
      #expect(isNear(left.distance?.value, right.distance?.value), "\(name)")
    }
  }

  private func record(_ recording: inout PlannedRecording, until end: Nanoseconds) throws -> Recorded {
    let recorded = try Recorded()
    var assembler = BlockAssembler()
    func add(_ block: BlockAssembler.Assembled?) throws {
      guard let block else { return }
      let series = recording.series.enumerated().map { index, one in
        (index, SeriesKey(device: "ev", property: one.property, type: one.type, unit: one.unit))
      }
      try recorded.add(block.bytes, Dictionary(uniqueKeysWithValues: series), continues: block.continues)
    }
    direct = PeriodDetector(rules: PeriodRules())
    (directPeriods, latest) = ([:], .min)
    for sample in recording.run(until: end) {
      addDirectly(sample, of: recording.series[sample.series])
      if let failure = sample.powerFailure { try add(assembler.interrupt(at: failure / 1000)) }
      try add(try assembler.append(sample.content, series: sample.series, at: sample.time / 1000))
    }
    try add(assembler.flush(until: end / 1000))
    return recorded
  }

  @Test func `three days have exactly the trips and charges of their plan`() throws {
    let plan = DrivingPlan(days: 3, seed: 14)
    var recording = try PlannedRecording(PlannedCar(plan, seed: 14), rate: 1, seed: 14)
    let found = try record(&recording, until: plan.length).periods(at: plan.length / 1000)
    let trips = found.filter { $0.kind == .trip }
    let charges = found.filter { $0.kind == .charge }
    let planned = (trips: plan.activities.filter(\.isTrip), charges: plan.activities.filter { !$0.isTrip })
    #expect(planned.trips.count >= 5 && planned.charges.count >= 1)
    try #require(trips.count == planned.trips.count && charges.count == planned.charges.count)
    for (trip, plan) in zip(trips, planned.trips) {
      // A parked car is probed every 30 s.
      #expect(abs(trip.start - plan.start / 1000) < 45_000_000 && abs((trip.end ?? 0) - plan.end / 1000) < 45_000_000)
      #expect(trip.marks == [])
    }
    for (charge, plan) in zip(charges, planned.charges) {
      #expect(abs(charge.start - plan.start / 1000) < 90_000_000 && charge.end ?? .max <= plan.end / 1000)
      #expect(charge.marks == [.derived])
      #expect(charge.statistics.charged?.value ?? 0 > 8)
    }
    let distance = trips.reduce(0) { $0 + ($1.statistics.distance?.value ?? 0) }
    #expect(abs(distance - recording.distance) < 0.02 * recording.distance)
  }

  /// Checks periods against lines such as `trip 1-31`, in minutes since `origin`.
  private func check(_ name: String, _ periods: [DetectedPeriod], _ expected: [String], since origin: Int64) {
    let used = periods.filter { $0.kind != .parking }.sorted { $0.start < $1.start }
    let lines = used.map { period in
      func minutes(_ time: Int64?) -> String { time.map { String(Int((Double($0 - origin) / 60e6).rounded())) } ?? "open" }
      return "\(period.kind) \(minutes(period.start))-\(minutes(period.end))"
    }
    #expect(lines == expected, "\(name)")
  }

  @Test(arguments: DrivingCase.all) func `a fresh recording of a golden case gives its periods`(_ one: DrivingCase) throws {
    var recording = try PlannedRecording(PlannedCar(one.plan, seed: 1), rate: 1, seed: 1, outages: one.outages)
    let recorded = try record(&recording, until: one.plan.length)
    let periods = try recorded.periods(at: one.plan.length / 1000)
    check(one.name, periods, one.expected, since: 0)
    checkDirect(periods, at: one.plan.length / 1000, one.name)
  }

  /// Tests/Recordings/history has the golden cases as `vehiclesim history --case NAME --rate 0.25 --start 2026-03-28` wrote them.
  @Test(arguments: DrivingCase.all) func `the stored recording of a golden case gives its periods`(_ one: DrivingCase) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let file = folder.appending(path: "Recordings/history/\(one.name).blocks")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    #expect(lines[0] + "\n" == BlockLine.header)
    let recorded = try Recorded()
    for line in lines.dropFirst() {
      let block = try #require(JSON(String(line)).flatMap { BlockLine($0) })
      var series: [Int: SeriesKey] = [:]
      for one in block.series {
        series[one.id] = SeriesKey(device: "ev", property: one.property, type: try #require(ValueType(rawValue: one.type)), unit: one.unit)
      }
      try recorded.add(try #require(Base64.decode(block.block)), series, continues: block.continues)
    }
    // 2026-03-28, the day before summer time begins in Europe, in UTC.
    check(one.name, try recorded.periods(at: nil), one.expected, since: 1_774_656_000_000_000)
  }
}
