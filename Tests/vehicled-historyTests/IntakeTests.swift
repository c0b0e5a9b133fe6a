// What is recorded of the replies of Watch: which values, at which times, in which series and batches.

import HistoryStore
import Observations
import Protocols
import Testing
import Varlink

@testable import vehicled_history

@Suite struct IntakeTests {
  /// The boot is a million seconds old.
  private static let offset: Int64 = 1_700_000_000_000_000
  private static func clock(_ seconds: Double) -> ClockReading {
    let boot = Int64(seconds * 1e6)
    return ClockReading(boot: boot, wall: boot + offset, isSynchronised: true)
  }

  private static func reading(
    _ property: String, _ value: Value?, at seconds: Double? = nil, age: Double = 0, reason: String? = nil
  ) -> Contract.Reading {
    Contract.Reading(
      device: "ev", property: property, value: value, unit: "km/h", time: seconds.map { Int($0 * 1e6) + Int(offset) },
      age: value == nil ? nil : age, reason: reason)
  }

  /// The wall-clock time at some seconds of the boot.
  private static func wall(_ seconds: Double) -> Int { Int(seconds * 1e6) + Int(offset) }

  /// A snapshot that was sent at a time in seconds; that of its values if nil.
  private static func snapshot(
    _ readings: [Contract.Reading], state: String = "polling", sent: Double? = nil
  ) -> Contract.Watch.Result {
    Contract.Watch.Result(
      sequence: 0, time: sent.map(wall) ?? sendTime(readings),
      snapshot: [Contract.Device(name: "ev", kind: "obd", state: state, readings: readings)])
  }

  private static func changes(_ readings: Contract.Reading..., sent: Double? = nil) -> Contract.Watch.Result {
    Contract.Watch.Result(sequence: 1, time: sent.map(wall) ?? sendTime(readings), changes: readings)
  }

  /// When readings of these times and ages are sent; nil if they have none.
  private static func sendTime(_ readings: [Contract.Reading]) -> Int? {
    readings.compactMap { reading in
      guard let time = reading.time, let age = reading.age, age < 1e9 else { return nil }
      return time.addingReportingOverflow(Int(age * 1e6)).partialValue
    }.max()
  }

  @Test func `a value has the time of its measurement, and a repeated one is read once`() {
    var intake = WatchIntake(at: Self.clock(0))
    let first = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 9.25, age: 0.75)]), at: Self.clock(10)).observations
    #expect(first.map(\.property) == ["state", "speed"])
    #expect(first.map(\.time) == [10_000_000, 9_250_000])
    #expect(first[0].content == .value(.string("polling")))
    #expect(intake.kind(of: "ev") == "obd")
    #expect(intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 9.25, age: 1.75)]), at: Self.clock(11)).observations.isEmpty)
    let equal = intake.read(Self.changes(Self.reading("speed", .int(5), at: 12)), at: Self.clock(12)).observations
    #expect(equal.map(\.time) == [12_000_000], "an equal value of a later poll is a sample")
  }

  @Test func `a clock that was set since does not move a value`() {
    var intake = WatchIntake(at: Self.clock(0))
    // The value was measured 3 s ago, when the clock was a year behind.
    let reading = Self.reading("speed", .int(5), at: 7 - 31_536_000, age: 3)
    #expect(intake.read(Self.snapshot([reading]), at: Self.clock(10)).observations.last?.time == 7_000_000)
    let absurd = Contract.Reading(device: "ev", property: "rpm", value: .int(1), time: .min, age: 1e300)
    #expect(intake.read(Self.changes(absurd), at: Self.clock(11)).observations.map(\.time) == [11_000_000])
    // The difference between its times is the smallest number.
    let smallest = Contract.Reading(device: "ev", property: "soc", value: .int(1), time: .min + 12_000_000 + Int(Self.offset), age: 0)
    #expect(intake.read(Self.changes(smallest), at: Self.clock(12)).observations.map(\.time) == [12_000_000])
  }

  @Test func `a reader that was stopped stores the times of the measurements`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10)]), at: Self.clock(10))
    // Sent at once, and read 17 s later.
    for (value, time) in [(6, 11.0), (7, 12.0), (8, 28.0)] {
      let reading = Self.reading("speed", .int(value), at: time, age: 0.001)
      #expect(intake.read(Self.changes(reading), at: Self.clock(28)).observations.map(\.time) == [Int64(time * 1e6)])
    }
    // The clock is set by an hour meanwhile: only the age is right.
    let set = ClockReading(boot: 40_000_000, wall: 40_000_000 + Self.offset + 3_600_000_000, isSynchronised: true)
    #expect(intake.read(Self.changes(Self.reading("speed", .int(9), at: 30, age: 3)), at: set).observations.map(\.time) == [37_000_000])
  }

  @Test func `a reader that was stopped before its first read stores the times of the measurements`() {
    var intake = WatchIntake(at: Self.clock(10))
    // Sent at 10.5 s, and read 4 s later. The older value is from before the start.
    let snapshot = Self.snapshot([Self.reading("speed", .int(5), at: 10.4, age: 0.1), Self.reading("soc", .int(70), at: 8, age: 2.5)])
    #expect(intake.read(snapshot, at: Self.clock(14.5)).observations.dropFirst().map(\.time) == [10_400_000, 8_000_000])
    // Nothing was measured after the start.
    var other = WatchIntake(at: Self.clock(10))
    let older = Self.snapshot([Self.reading("speed", .int(5), at: 9.9, age: 0.4)])
    #expect(other.read(older, at: Self.clock(14.5)).observations.last?.time == 9_900_000)
    #expect(other.read(Self.changes(Self.reading("speed", .int(6), at: 11)), at: Self.clock(14.5)).observations.map(\.time) == [11_000_000])
  }

  @Test func `a clock that is set back a little makes no observation of the future`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10)]), at: Self.clock(10))
    // Set back by 0.4 s after the measurement and the absence, before the reply was sent.
    let clock = ClockReading(boot: 11_000_000, wall: 10_600_000 + Self.offset, isSynchronised: true)
    let reply = Self.changes(
      Self.reading("speed", .int(6), at: 10.9, age: 0.1), Self.reading("rpm", nil, at: 10.99, reason: "stale"), sent: 10.6)
    #expect(intake.read(reply, at: clock).observations.map(\.time) == [11_000_000, 11_000_000])
    let next = Self.changes(Self.reading("rpm", .int(1), at: 10.7, age: 0.001), sent: 10.701)
    let later = ClockReading(boot: 11_101_000, wall: 10_701_000 + Self.offset, isSynchronised: true)
    #expect(intake.read(next, at: later).observations.map(\.time) == [11_100_000])
  }

  @Test func `a value from before the clock was set does not move the others`() {
    var intake = WatchIntake(at: Self.clock(10))
    // The clock was set forward by 3 s between the two measurements, before the start of the reader.
    let snapshot = Self.snapshot([Self.reading("soc", .int(70), at: 2, age: 5.4), Self.reading("speed", .int(5), at: 10.3, age: 0.1)])
    #expect(intake.read(snapshot, at: Self.clock(10.4)).observations.map(\.time) == [10_400_000, 5_000_000, 10_300_000])
  }

  @Test func `an absence that is read late has the time at which it began, and the next value keeps its own`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10)]), at: Self.clock(10))
    let down = Self.reading("speed", nil, at: 11.5, reason: "link down: unplugged")
    let absent = intake.read(Self.changes(down, sent: 11.5), at: Self.clock(28))
    #expect(absent.observations == [Self.sample("speed", .absent("link down: unplugged"), at: 11.5)])
    let next = intake.read(Self.changes(Self.reading("speed", .int(6), at: 12, age: 0.001)), at: Self.clock(28)).observations
    #expect(next == [Self.sample("speed", .value(.int(6)), at: 12)])
    // The absence of a property that is new to this reader is not older than the reply before, which was sent at 12.001 s.
    let stale = Self.reading("rpm", nil, at: 3, reason: "stale")
    let other = intake.read(Self.changes(stale, sent: 12.1), at: Self.clock(28)).observations
    #expect(other.map(\.time) == [12_001_000])
  }

  @Test func `the values of a device that was reconfigured while the reader was stopped keep their times`() {
    var intake = WatchIntake(at: Self.clock(0))
    let first = intake.read(Self.snapshot([Self.reading("speed", nil, at: 3, reason: "stale")]), at: Self.clock(10)).observations
    #expect(first.map(\.time) == [10_000_000, 10_000_000], "what was absent before the first reply is absent since then")
    _ = intake.read(Self.changes(Self.reading("speed", .int(5), at: 11)), at: Self.clock(11))
    // Stopped until 28 s.
    let event = Contract.Event(device: "ev", name: Contract.Event.removed, text: "reconfigured", time: 12_000_000 + Int(Self.offset))
    _ = intake.read(Contract.Watch.Result(sequence: 2, time: Self.wall(12), events: [event]), at: Self.clock(28))
    let unknown = [Self.reading("rpm", nil, at: 12.25, reason: "stale"), Self.reading("speed", nil, reason: "not known yet")]
    let new = intake.read(Self.snapshot(unknown, sent: 12.5), at: Self.clock(28)).observations
    #expect(new.map(\.property) == ["state", "rpm", "speed"] && new.map(\.time) == [12_500_000, 12_250_000, 12_500_000])
    #expect(intake.lastSent == 12_500_000)
    for time in [13.0, 14, 15] {
      let value = Self.reading("speed", .int(Int(time)), at: time, age: 0.001)
      #expect(intake.read(Self.changes(value), at: Self.clock(28)).observations.map(\.time) == [Int64(time * 1e6)])
    }
  }

  @Test func `a value from before the clock was set keeps its time after a reconnection`() {
    var intake = WatchIntake(at: Self.clock(0))
    // The clock was 20 s behind for the first 10 s.
    _ = intake.read(
      Contract.Watch.Result(sequence: 0), at: ClockReading(boot: 5_000_000, wall: Self.offset - 15_000_000, isSynchronised: false))
    _ = intake.read(Contract.Watch.Result(sequence: 1), at: Self.clock(11))
    intake.restart()
    let old = Self.reading("vin", .string("V"), at: 5 - 20, age: 95)
    #expect(intake.read(Self.snapshot([old], sent: 100), at: Self.clock(100)).observations.last?.time == 5_000_000)
    // The same in a reply that is read 4 s late.
    intake.restart()
    let late = Self.snapshot([Self.reading("speed", .int(5), at: 105.9, age: 0.1), Self.reading("vin", .string("V"), at: 5 - 20, age: 101)])
    #expect(intake.read(late, at: Self.clock(110)).observations.dropFirst().map(\.time) == [105_900_000, 5_000_000])
  }

  @Test func `a value from before the clock was set back keeps its time`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(
      Contract.Watch.Result(sequence: 0), at: ClockReading(boot: 1_000_000_000, wall: Self.offset + 1_600_000_000, isSynchronised: false))
    _ = intake.read(Contract.Watch.Result(sequence: 1), at: Self.clock(1100))
    let old = Self.snapshot([Self.reading("vin", .string("V"), at: 1600, age: 1000)])
    #expect(intake.read(old, at: Self.clock(2000)).observations.last?.time == 1_000_000_000)
  }

  // MARK: Lifetimes

  /// A schema with values of this lifetime in seconds.
  private static func schema(_ lifetime: Double?, _ properties: String...) -> Contract.Schema {
    let lifetime: Property.Lifetime = lifetime.map { .fresh(Nanoseconds($0 * 1e9)) } ?? .whileUp
    let properties = properties.map { Property($0, .int, unit: "km/h", lifetime: lifetime, help: "") }
    return Contract.Schema(device: "ev", kind: "obd", Schema(properties: properties))
  }

  private static func sample(_ property: String, _ content: Reading.Content, at seconds: Double) -> Observation {
    Observation(device: "ev", property: property, unit: "km/h", time: Int64(seconds * 1e6), content: content)
  }

  @Test func `a value ends with its lifetime if the daemon has merged what followed, and what did arrive keeps its time`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10), Self.reading("rpm", .int(1), at: 10)]), at: Self.clock(10))
    intake.describe([Self.schema(2, "speed", "rpm")])
    // Frozen at 10 s for 17 s: the first reply was in the socket's buffer, the second one is what the daemon has merged.
    let buffered = intake.read(Self.changes(Self.reading("speed", .int(6), at: 11, age: 0.001)), at: Self.clock(27)).observations
    #expect(buffered == [Self.sample("speed", .value(.int(6)), at: 11)])
    let merged = Self.changes(Self.reading("rpm", .int(3), at: 26.75, age: 0.25), Self.reading("speed", .int(8), at: 26.9, age: 0.1))
    #expect(
      intake.read(merged, at: Self.clock(27)).observations == [
        Self.sample("rpm", .absent("stale"), at: 12), Self.sample("speed", .absent("stale"), at: 13),
        Self.sample("rpm", .value(.int(3)), at: 26.75), Self.sample("speed", .value(.int(8)), at: 26.9),
      ])
  }

  @Test func `a daemon or a computer that was stopped does not prolong a value`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10), Self.reading("rpm", .int(1), at: 10)]), at: Self.clock(10))
    intake.describe([Self.schema(2, "speed", "rpm")])
    // Suspended for an hour, in which the wall clock was set back by a year.
    let clock = ClockReading(boot: 3_610_000_000, wall: 3_610_000_000 + Self.offset - 31_536_000_000_000, isSynchronised: true)
    let stale = intake.read(Self.changes(Self.reading("speed", nil, reason: "stale")), at: clock).observations
    #expect(stale == [Self.sample("speed", .absent("stale"), at: 12)])
    let down = intake.read(Self.changes(Self.reading("rpm", nil, reason: "link down: unplugged")), at: clock).observations
    #expect(down == [Self.sample("rpm", .absent("stale"), at: 12), Self.sample("rpm", .absent("link down: unplugged"), at: 3610)])
  }

  @Test func `no value ends that may have been confirmed`() {
    var intake = WatchIntake(at: Self.clock(0))
    var slow = WatchIntake(at: Self.clock(0), minimumInterval: 1000)
    for time in [0.0, 2.9] {
      // The daemon repeats an unchanged value once per second, and may wait for the interval of the watch.
      let reply = Self.snapshot([Self.reading("speed", .int(5), at: time)])
      #expect(!intake.read(reply, at: Self.clock(time)).observations.contains { $0.content == .absent("stale") })
      _ = slow.read(reply, at: Self.clock(time))
      intake.describe([Self.schema(2, "speed")])
      slow.describe([Self.schema(2, "speed")])
    }
    let later = Self.changes(Self.reading("speed", .int(5), at: 6.5))
    #expect(intake.read(later, at: Self.clock(6.5)).observations.map(\.time) == [4_900_000, 6_500_000])
    #expect(slow.read(later, at: Self.clock(6.5)).observations.map(\.time) == [6_500_000])
  }

  @Test func `the schemas of the watch replace those of Describe, and a value without a lifetime does not end`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Contract.Watch.Result(sequence: 0, schemas: [Self.schema(nil, "speed")]), at: Self.clock(9))
    intake.describe([Self.schema(2, "speed")])
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10)]), at: Self.clock(10))
    #expect(intake.read(Self.changes(Self.reading("speed", .int(6), at: 25)), at: Self.clock(25)).observations.count == 1)
    _ = intake.read(Contract.Watch.Result(sequence: 2, schemas: [Self.schema(2, "speed")]), at: Self.clock(26))
    #expect(intake.read(Self.changes(Self.reading("speed", .int(7), at: 30)), at: Self.clock(30)).observations.count == 2)
  }

  @Test func `a connection that ends after a freeze leaves no value that its last reply did not confirm`() {
    var intake = WatchIntake(at: Self.clock(0))
    let snapshot = Self.snapshot([Self.reading("speed", .int(5), at: 10, age: 9), Self.reading("rpm", .int(1), at: 18.5, age: 0.5)])
    _ = intake.read(snapshot, at: Self.clock(19))
    intake.describe([Self.schema(9, "speed", "rpm")])
    #expect(intake.endUnconfirmed().isEmpty)
    _ = intake.read(Contract.Watch.Result(sequence: 1), at: Self.clock(21))
    #expect(intake.endUnconfirmed() == [Self.sample("speed", .absent("stale"), at: 19)])
    #expect(intake.endUnconfirmed().isEmpty)
  }

  @Test func `absence has a reason, and the time at which it was reported`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10)]), at: Self.clock(10))
    let stale = Self.reading("speed", nil, reason: "stale")
    let absent = intake.read(Self.changes(stale), at: Self.clock(12)).observations
    #expect(absent == [Observation(device: "ev", property: "speed", unit: "km/h", time: 12_000_000, content: .absent("stale"))])
    #expect(intake.read(Self.changes(stale), at: Self.clock(13)).observations.isEmpty)
    let late = intake.read(Self.changes(Self.reading("speed", .int(6), at: 11.9, age: 1.2)), at: Self.clock(13)).observations
    #expect(late.map(\.time) == [12_000_001], "not before the absence")
  }

  @Test func `states, properties that are no longer declared, and devices that are removed`() {
    var intake = WatchIntake(at: Self.clock(0))
    _ = intake.read(Self.snapshot([Self.reading("speed", .int(5), at: 10)]), at: Self.clock(10))
    let next = intake.read(Self.snapshot([], state: "parked"), at: Self.clock(20)).observations
    #expect(next.map(\.content) == [.value(.string("parked")), .absent("no longer declared")])
    #expect(intake.read(Self.snapshot([], state: "parked"), at: Self.clock(20.5)).observations.isEmpty, "the same state")
    let event = Contract.Event(device: "ev", name: Contract.Event.removed, text: "", time: 0)
    #expect(intake.read(Contract.Watch.Result(sequence: 2, events: [event, event]), at: Self.clock(21)).removed == ["ev"])
    #expect(intake.kind(of: "ev") == "obd", "its last observations are recorded now")
    #expect(intake.read(Contract.Watch.Result(sequence: 3, events: [event]), at: Self.clock(22)).removed == [])
    #expect(intake.kind(of: "ev") == nil)
  }

  @Test func `a property that is no longer declared ends when the reply was sent, or with its lifetime before that`() {
    var intake = WatchIntake(at: Self.clock(0))
    let values = [Self.reading("speed", .int(5), at: 10), Self.reading("rpm", .int(1), at: 10)]
    _ = intake.read(Self.snapshot(values), at: Self.clock(10))
    intake.describe([Self.schema(2, "speed", "soc")])
    // The daemon reported the new schema at 14 s; the reader was stopped until 28 s.
    let soc = Self.reading("soc", .int(70), at: 13.9, age: 0.1)
    let device = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [soc])
    let reply = Contract.Watch.Result(sequence: 1, time: Self.wall(14), snapshot: [device], schemas: [Self.schema(2, "soc")])
    let ends = intake.read(reply, at: Self.clock(28)).observations.filter { $0.property != "soc" && $0.property != "state" }
    #expect(ends.contains(Self.sample("speed", .absent("stale"), at: 12)), "\(ends)")
    #expect(ends.contains(Self.sample("rpm", .absent("no longer declared"), at: 14)) && ends.count == 2, "\(ends)")
  }

  @Test func `values end when their device is removed, or with their lifetime before that`() {
    var intake = WatchIntake(at: Self.clock(0))
    let snapshot = Self.snapshot([
      Self.reading("odometer", .int(9), at: 10), Self.reading("rpm", nil, reason: "stale"), Self.reading("soc", .int(1), at: 10),
      Self.reading("speed", .int(5), at: 10),
    ])
    _ = intake.read(snapshot, at: Self.clock(10))
    _ = intake.read(Contract.Watch.Result(sequence: 1, schemas: [Self.schema(2, "soc", "speed")]), at: Self.clock(10.5))
    _ = intake.read(Self.changes(Self.reading("soc", .int(2), at: 15)), at: Self.clock(15))
    // The reader was stopped from 15 s on, and the device was removed at 16 s.
    let event = Contract.Event(device: "ev", name: Contract.Event.removed, text: "removed", time: 16_000_000 + Int(Self.offset))
    let (observations, removed) = intake.read(Contract.Watch.Result(sequence: 2, events: [event]), at: Self.clock(35))
    let reason = Reading.Content.absent("removed")
    #expect(
      observations == [
        Self.sample("odometer", reason, at: 16), Self.sample("soc", reason, at: 16), Self.sample("speed", .absent("stale"), at: 12),
        Observation(device: "ev", property: "state", unit: nil, time: 16_000_000, content: reason),
      ])
    #expect(removed == ["ev"] && intake.kind(of: "ev") == "obd")
    // It is back with another kind, and nothing of the old device is left.
    let readings = [Self.reading("speed", .int(7), at: 35)]
    let device = Contract.Device(name: "ev", kind: "can", state: "listening", readings: readings)
    let new = Contract.Watch.Result(sequence: 3, snapshot: [device])
    #expect(intake.read(new, at: Self.clock(36)).observations.map(\.property) == ["state", "speed"])
    #expect(intake.kind(of: "ev") == "can")
  }

  @Test func `vehicles are selected, others only when they are named`() {
    #expect(Selection().includes("ev", kind: "obd", "speed") && Selection().includes("tesla", kind: "can", "speed"))
    #expect(!Selection().includes("tesla", kind: "can", "gps-latitude") && !Selection().includes("ev", kind: "obd", "longitude"))
    #expect(Selection(included: [ReferencePattern("tesla")]).includes("tesla", kind: "can", "gps-latitude"))
    #expect(!Selection().includes("band", kind: "health", "heart-rate"))
    #expect(!["latitude", "longitude", "speed", "state"].contains { Selection().includes("gps", kind: "position", $0) })
    #expect(Selection(included: [ReferencePattern("gps")]).includes("gps", kind: "position", "latitude"))
    let selection = Selection(
      included: [ReferencePattern("band.heart-*"), ReferencePattern("mirror")],
      excluded: [ReferencePattern("*.cell-*"), ReferencePattern("old")])
    #expect(selection.includes("band", kind: "health", "heart-rate") && !selection.includes("band", kind: "health", "steps"))
    #expect(selection.includes("mirror", kind: "mirror", "weight"))
    #expect(!selection.includes("ev", kind: "obd", "cell-1") && !selection.includes("old", kind: "obd", "speed"))
    #expect(selection.includes("ev", kind: "obd", "speed"))
  }

  // MARK: Batches

  private static let speed = SeriesKey(device: "ev", property: "speed", type: .int, unit: "km/h")

  @Test func `samples wait ten seconds at most, and follow the batch before`() throws {
    var builder = BatchBuilder(device: "ev", at: 100)
    #expect(builder.cut(at: 5_000_000) == nil, "nothing was recorded yet")
    builder.append(.value(.int(1)), of: Self.speed, at: 90, now: 100)
    builder.append(.value(.int(2)), of: Self.speed, at: 4_000_000, now: 4_000_000)
    #expect(builder.due == 100 + BatchBuilder.maxDelay)
    let cut = builder.cut(at: 9_000_000)
    let first = try #require(cut)
    #expect(first.start == 100 && first.end == 9_000_000 && !first.continues && first.keys == [Self.speed] && first.entries.count == 2)
    #expect(builder.due == 9_000_000 + BatchBuilder.idleInterval, "a device without values is stored rarely")
    let later = builder.cut(at: 20_000_000)
    let idle = try #require(later)
    #expect(idle.start == 9_000_000 && idle.end == 20_000_000 && idle.continues && idle.entries.isEmpty)
    builder.append(.value(.int(3)), of: Self.speed, at: 30_000_000, now: 21_000_000)
    #expect(builder.cut(at: 21_000_000)?.end == 30_000_000, "a batch covers its samples")
  }

  @Test func `many samples are stored early`() {
    var builder = BatchBuilder(device: "ev", at: 0)
    for time in 0..<Int64(BatchBuilder.maxCount) { builder.append(.value(.int(1)), of: Self.speed, at: time, now: time) }
    #expect(builder.due == .min)
  }

  // MARK: Clocks and zones

  @Test func `the offset of a boot follows the clock until that is synchronised`() {
    func reading(_ wall: Int64, _ isSynchronised: Bool = false) -> ClockReading {
      ClockReading(boot: 1000, wall: wall, isSynchronised: isSynchronised)
    }
    var offset = ClockOffset(reading(2000))
    #expect(offset.update(reading(2500)) == nil, "less than a millisecond")
    #expect(offset.update(reading(9_001_000)).map { $0.offset } == 9_000_000)
    let synchronised = offset.update(reading(50_001_000, true))
    #expect(synchronised?.offset == 50_000_000 && synchronised?.isFinal == true)
    #expect(offset.update(reading(0)) == nil && offset.stored == 50_000_000, "a later step changes nothing")
  }

  @Test(
    arguments: [
      (nil, "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
      (nil, "../usr/share/zoneinfo/posix/America/Argentina/Salta", "America/Argentina/Salta"),
      ("Asia/Tokyo", "/usr/share/zoneinfo/Europe/Berlin", "Asia/Tokyo"), (":/usr/share/zoneinfo/UTC", nil, "UTC"),
      ("CET-1CEST", "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"), (nil, nil, "UTC"), ("", "/etc/somewhere", "UTC"),
    ] as [(String?, String?, String)])
  func `the time zone is that of the environment or of the system`(_ environment: String?, _ link: String?, _ name: String) {
    #expect(LocalZone.name(environment: environment, link: link) == name)
  }
}
