// The periods of a recording: the same live, after a restart, and when they are computed again; and how they are stored.

import Foundation
import HistoryStore
import Observations
import Protocols
import SQLite
import SampleBlocks
import Testing
import Varlink

@testable import Trips
@testable import vehicled_history

@Suite struct PeriodTests {
  private static let second: Int64 = 1_000_000
  private static let offset: Int64 = 1_700_000_000 * second

  private final class Directory {
    let path = NSTemporaryDirectory() + "history-\(UUID().uuidString)"
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  /// A drive of ten minutes after a minute of standing, then parking, once a second: observations in the order of time.
  private static func drive(seconds: Range<Int64> = 0..<1800) -> [Observation] {
    var observations: [Observation] = []
    for time in seconds {
      let isDriving = (60..<660).contains(time)
      func add(_ property: String, _ value: Value, _ unit: String?) {
        observations.append(
          Observation(device: "ev", property: property, unit: unit, time: time * second, content: .value(value)))
      }
      if time == 0 { add("state", .string("polling"), nil) }
      if time == 700 { add("state", .string("parked"), nil) }
      if time >= 700 { continue }
      add("speed", .float(isDriving ? 60 : 0), "km/h")
      add("gear", .string(isDriving ? "drive" : "park"), nil)
      if time % 60 == 0 { add("odometer", .float(1000 + Double(max(0, min(time, 660) - 60)) / 60), "km") }
    }
    return observations
  }

  /// Records observations as the service does: in batches of ten seconds.
  private static func record(_ observations: [Observation], in store: HistoryStore, boot: Int, to end: Int64) throws {
    var builder = BatchBuilder(device: "ev", at: observations.first?.time ?? 0)
    for observation in observations {
      while builder.due <= observation.time {
        if let batch = builder.cut(at: observation.time) { _ = try store.append(batch, boot: boot) }
      }
      guard case .value(let value) = observation.content else { continue }
      let key = SeriesKey(device: "ev", property: observation.property, type: value.type, unit: observation.unit)
      builder.append(observation.content, of: key, at: observation.time, now: observation.time)
    }
    if let batch = builder.cut(at: end) { _ = try store.append(batch, boot: boot) }
  }

  @Test func `a trip ends although only values without a meaning for trips follow it`() throws {
    let directory = Directory()
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("one", offset: Self.offset)
    let polls = stride(from: Int64(680), to: 7200, by: 60).map {
      Observation(device: "ev", property: "polls", unit: nil, time: $0 * Self.second, content: .value(.int(Int($0))))
    }
    try Self.record(Self.drive(seconds: 0..<680) + polls, in: store, boot: boot, to: 7200 * Self.second)
    var replay = PeriodReplay(rules: PeriodRules())
    try replay.read(store.reader, device: "ev", in: .min ... .max)
    let found = replay.finish(at: replay.end)
    #expect(found.map(\.kind) == [.parking, .trip, .parking] && found[1].end.map { $0 <= Self.offset + 661 * Self.second } == true)
  }

  @Test func `recorded values give the periods that live ones give`() throws {
    let directory = Directory()
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("one", offset: Self.offset)
    let observations = Self.drive()
    try Self.record(observations, in: store, boot: boot, to: 1800 * Self.second)

    let tracker = PeriodTracker()
    tracker.beginReplay()
    var live: [Int: DetectedPeriod] = [:]
    func apply(_ actions: [PeriodTracker.Action]) {
      for action in actions { if case .save(let period) = action { live[period.id] = period } }
    }
    apply(tracker.goLive(with: PeriodDetector(), periods: [], at: .min))
    for observation in observations { apply(tracker.observe(observation, at: observation.time + Self.offset)) }
    apply(tracker.advance(to: 1800 * Self.second + Self.offset))
    for period in tracker.openPeriods { live[period.id] = period }

    for isMerged in [false, true] {
      if isMerged { try store.compact() }
      var replay = PeriodReplay(rules: PeriodRules())
      try replay.read(store.reader, device: "ev", in: .min ... .max)
      let found = replay.finish(at: 1798 * Self.second + Self.offset)
      #expect(found.map(\.kind) == [.parking, .trip, .parking])
      #expect(found == live.values.sorted { $0.start < $1.start }, "merged: \(isMerged)")
      #expect(abs((found[1].statistics.distance?.value ?? 0) - 10) < 0.2)
      #expect(replay.damage.isEmpty && replay.end == 1800 * Self.second + Self.offset)
    }
  }

  @Test func `values that arrive while recorded ones are read wait, and late ones are no step of the clock`() throws {
    let tracker = PeriodTracker()
    tracker.beginReplay()
    let observations = Self.drive(seconds: 0..<300)
    var actions: [PeriodTracker.Action] = []
    for observation in observations { actions += tracker.observe(observation, at: observation.time) }
    #expect(actions.isEmpty && tracker.openPeriods.isEmpty)
    actions = tracker.goLive(with: PeriodDetector(), periods: [], at: .min)
    #expect(tracker.openPeriods.map(\.kind).contains(.trip))
    let late = Observation(device: "ev", property: "speed", unit: "km/h", time: 0, content: .value(.float(50)))
    actions = tracker.observe(late, at: 200 * Self.second)
    #expect(tracker.openPeriods.map(\.kind) == [.trip])
    #expect(!actions.contains { if case .save(let period) = $0 { period.marks.contains(.clockStep) } else { false } })
  }

  @Test func `an open period is stored when it starts, then rarely, and when it ends`() {
    let tracker = PeriodTracker()
    tracker.beginReplay()
    _ = tracker.goLive(with: PeriodDetector(), periods: [], at: .min)
    var saved: [DetectedPeriod] = []
    for observation in Self.drive() {
      for action in tracker.observe(observation, at: observation.time) {
        if case .save(let period) = action { saved.append(period) }
      }
    }
    for time in stride(from: Int64(700), through: 1800, by: 10) {
      for action in tracker.advance(to: time * Self.second) { if case .save(let period) = action { saved.append(period) } }
    }
    let trips = saved.filter { $0.kind == .trip }
    #expect(trips.first?.end == nil && trips.last?.end == 660 * Self.second || trips.last?.end == 659 * Self.second)
    #expect((3...6).contains(trips.count), "\(trips.count) writes")
  }

  @Test func `details survive the store, and follow a correction of the clock`() throws {
    let directory = Directory()
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("one", offset: Self.offset)
    try Self.record(Self.drive(), in: store, boot: boot, to: 1800 * Self.second)
    var replay = PeriodReplay(rules: PeriodRules())
    try replay.read(store.reader, device: "ev", in: .min ... .max)
    let axis = LiveAxis(boot: boot, offset: Self.offset)
    let numbers = PeriodNumbers()
    for period in replay.finish(at: axis.wall(1800 * Self.second)) {
      let details = PeriodMapping.details(
        period, device: "ev", zone: "Europe/Berlin", end: period.end ?? axis.wall(1800 * Self.second))
      try store.save(PeriodRecord(detected: period.id, details: details), numbers, axis)
    }
    let row = try #require(try store.reader.periods(kind: .trip).first)
    #expect(row.start == BootTime(boot: boot, time: row.start.time) && row.start.time < 61 * Self.second)
    let before = PeriodMapping.details(row, try TimeAxis(store.reader)).period
    #expect(before.number == row.id && before.device == "ev" && before.kind == "trip" && before.zone == "Europe/Berlin" && !before.open)
    #expect(before.distance.map { abs($0.value - 10) < 0.2 } == true && before.drivenTime.map { abs($0 - 600) < 5 } == true)
    #expect(before.journey == before.start && before.maximumSpeed == 60 && before.startOdometer == 1000)

    for continues in [true, false] {
      var list = PeriodList(try TimeAxis(store.reader))
      let size = list.size
      try store.reader.readPeriods([row.id, row.id]) { (row) throws(StoreError) in
        try list.append(row)
        return true
      }
      #expect(list.size > size + 2 * row.summary.utf8.count)
      let reply = try VarlinkReply(Array(list.message(continues: continues).dropLast()))
      #expect(reply.continues == continues && reply.error == nil)
      #expect(try reply.parameters(as: HistoryContract.PeriodsMethod.Result.self).periods.map(\.start) == [before.start, before.start])
    }

    try store.setOffset(Self.offset + 3600 * Self.second, synchronised: true, ofBoot: boot)
    let after = PeriodMapping.details(try #require(try store.reader.period(row.id)), try TimeAxis(store.reader)).period
    #expect(after.start == before.start + 3_600_000_000 && after.end == before.end + 3_600_000_000 && after.journey == after.start)
  }

  @Test func `periods that are computed again keep their numbers and zones`() throws {
    let directory = Directory()
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("one", offset: Self.offset)
    try Self.record(Self.drive(), in: store, boot: boot, to: 1800 * Self.second)
    let axis = LiveAxis(boot: boot, offset: Self.offset)
    func cut(_ rules: PeriodRules) throws -> [StoredPeriod] {
      let known = try ReplayRange(store.reader, device: "ev", from: nil, boot: boot)
      var replay = PeriodReplay(rules: rules)
      try replay.read(store.reader, device: "ev", in: known.start ... .max)
      let end = axis.wall(1800 * Self.second)
      let records = replay.finish(at: end).map { period in
        PeriodRecord(
          detected: period.id,
          details: PeriodMapping.details(period, device: "ev", zone: known.zone(at: period.start), end: period.end ?? end))
      }
      try store.replace("ev", in: known.start &+ 1...Int64.max, with: records, PeriodNumbers(), axis, damaged: [])
      return try store.reader.periods(of: "ev").reversed()
    }
    /// Replaces all periods by none. Those over damaged blocks stay.
    func replaceAll(damaged range: ClosedRange<Int64>) throws -> [StoredPeriod] {
      try store.replace("ev", in: .min + 1 ... .max, with: [], PeriodNumbers(), axis, damaged: [range])
      return try store.reader.periods(of: "ev").reversed()
    }
    let first = try cut(PeriodRules())
    #expect(first.map(\.kind) == [.parking, .trip, .parking])
    #expect(first.last?.isOpen == true)
    var rules = PeriodRules()
    rules.movingTime = 20 * Self.second
    #expect(try cut(rules).map(\.id) == first.map(\.id))
    rules.minTripDistance = 50
    let parked = try cut(rules)
    #expect(parked.map(\.kind) == [.parking], "the trip is too short by this rule")
    #expect(first.contains { $0.id == parked[0].id })
    let trip = try #require(try cut(PeriodRules()).first { $0.kind == .trip })
    let middle = axis.wall(trip.start.time) + 60 * Self.second
    #expect(try replaceAll(damaged: middle...middle + Self.second).map(\.id) == [trip.id])
  }

  @Test func `a range is extended to whole periods, and open ones are left to the live tracker`() throws {
    let directory = Directory()
    let store = try HistoryStore(directory: directory.path)
    let boot = try store.boot("one", offset: 0)
    func add(_ kind: StoredPeriod.Kind, _ start: Int64, _ end: Int64, isOpen: Bool = false) throws {
      var period = StoredPeriod(
        device: "ev", kind: kind, start: BootTime(boot: boot, time: start), end: BootTime(boot: boot, time: end), zone: "UTC")
      period.isOpen = isOpen
      try store.store(period)
    }
    try add(.parking, 0, 100)
    try add(.trip, 100, 200)
    try add(.parking, 200, 900, isOpen: true)
    let reader = store.reader
    #expect(try ReplayRange.extended(reader, device: "ev", 120...130, isLive: true) == 100...200)
    #expect(try ReplayRange.extended(reader, device: "ev", 120...300, isLive: true) == nil)
    #expect(try ReplayRange.extended(reader, device: "ev", 120 ... .max, isLive: false) == 100 ... .max)
    #expect(try ReplayRange(reader, device: "ev", from: nil, boot: boot + 1).start == 200)
    #expect(try ReplayRange(reader, device: "ev", from: 150, boot: boot + 1).start == 100)
    #expect(try ReplayRange(reader, device: "other", from: nil, boot: boot).start == .min)
  }
}
