// What the detector reports while samples arrive, its rules, and its memory.

import Testing
import Trips

@Suite("Reports of the period detector") struct DetectorTests {
  @Test func `a parked period exists from the first sample, a trip from its first seconds`() {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(1)
    #expect(Replay(vehicle).parkedPeriods.map(\.marks) == [.startUnknown])
    vehicle.park(60)
    vehicle.drive(4, 30)
    let replay = Replay(vehicle)
    #expect(replay.trips.count == 1 && replay.trips.first?.end == nil)
    #expect(replay.detector.openPeriods.map(\.kind) == [.trip])
  }

  @Test func `an open period is reported again every ten seconds, and less often on request`() {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(1000)
    var slow = PeriodRules()
    slow.updateInterval = 100_000_000
    #expect((90...110).contains(Replay(vehicle).changes))
    #expect((9...12).contains(Replay(vehicle, rules: slow).changes))
  }

  @Test func `the open period has the figures so far`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(60)
    vehicle.drive(301, 60)
    let distance = try #require(Replay(vehicle).trips.first?.statistics.distance)
    #expect(abs(distance.value - 5) <= 0.1)
  }

  @Test func `the rules decide`() {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(60)
    vehicle.drive(600, 50)
    vehicle.park(600)
    vehicle.drive(600, 50)
    vehicle.park(1200)
    var rules = PeriodRules()
    #expect(Replay(vehicle, rules: rules).trips.count == 2)
    rules.tripPause = 900 * 1_000_000
    #expect(Replay(vehicle, rules: rules).trips.count == 1)
    rules.minTripDistance = 100
    let replay = Replay(vehicle, rules: rules)
    #expect(replay.trips.isEmpty && replay.parkedPeriods.count == 1)
  }

  @Test func `a trip is interrupted only if it goes on after a gap`() {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(60)
    vehicle.drive(600, 50)
    var other = vehicle
    vehicle.sleep(240)
    vehicle.plugIn(1800, kilowatts: 150)
    #expect(Replay(vehicle).trips.map(\.marks) == [[]], "it had ended, and a charge follows")
    other.offline(90, 50)
    #expect(Replay(other).trips.map(\.marks) == [[]], "no data yet")
    other.drive(60, 50)
    #expect(Replay(other).trips.map(\.marks) == [.interrupted])
  }

  @Test func `reading from the start of the open period again yields the same period`() throws {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(60)
    vehicle.drive(600, 50)
    vehicle.park(1200)
    vehicle.drive(300, 50)
    let whole = Replay(vehicle)
    let open = try #require(whole.trips.last)
    var again = Replay()
    for sample in vehicle.samples where sample.time >= open.start { again.add(sample) }
    #expect(again.trips.map(\.start) == [open.start])
  }

  @Test func `samples of unknown order and content never trap`() {
    var generator = LinearGenerator(state: 7)
    for _ in 0..<20 {
      var replay = Replay()
      var time: Int64 = 1_790_000_000_000_000
      for _ in 0..<5000 {
        let draw = generator.next()
        let steps: [Int64] = [50_000, 1_000_000, 0, 20_000_000, 1_000_000_000, -1_000_000, 1 << 50, 100_000_000_000]
        time += steps[Int(draw % 64 < 60 ? draw % 3 : draw % 8)]
        let values: [Double?] = [nil, 0, 1, 50, -50, 1e9, -1e300, .infinity, .nan, 2, 80, 12.5, .greatestFiniteMagnitude]
        let role = Role.allCases[Int(generator.next() % UInt64(Role.allCases.count))]
        replay.add(Sample(time, role, values[Int(generator.next() % UInt64(values.count))]))
        if draw % 5 == 0 { replay.advance(to: time + Int64(draw % 2_000_000_000)) }
      }
      replay.finish()
      for period in replay.periods.values {
        #expect(period.end ?? period.start >= period.start)
        #expect(period.pauses.count <= 256)
        for quantity in [period.statistics.distance, period.statistics.energy, period.statistics.charged].compactMap({ $0 }) {
          #expect(quantity.value.isFinite && quantity.bound >= 0)
        }
      }
    }
  }

  /// A deterministic generator, with the parameters of Knuth's MMIX.
  private struct LinearGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state >> 33
    }
  }
}
