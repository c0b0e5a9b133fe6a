// Every scenario of the golden set gives the expected periods, whether its samples are read at once or as they arrive.

import Testing
import Trips

@Suite("Golden set of periods") struct GoldenTests {
  @Test(arguments: Scenario.golden) func `gives the expected periods`(_ scenario: Scenario) {
    let vehicle = scenario.run()
    let replay = Replay(vehicle)
    #expect(replay.lines(since: vehicle.origin) == scenario.expected)
  }

  @Test(arguments: Scenario.golden) func `gives the same periods while its samples arrive`(_ scenario: Scenario) {
    let vehicle = scenario.run()
    var live = Replay()
    var clock = vehicle.origin
    for sample in vehicle.samples {
      while clock < sample.time {
        live.advance(to: clock)
        clock += 700_000
      }
      live.add(sample)
    }
    while clock < vehicle.time {
      live.advance(to: clock)
      clock += 700_000
    }
    live.advance(to: vehicle.time)
    live.finish()
    var atOnce = Replay(vehicle)
    atOnce.finish()
    // The periods differ at most in their IDs.
    #expect(live.lines(since: vehicle.origin) == atOnce.lines(since: vehicle.origin))
    for kind in [Period.Kind.trip, .charge, .parking] {
      #expect(live.all(kind).map(\.statistics) == atOnce.all(kind).map(\.statistics))
      #expect(live.all(kind).map(\.marks) == atOnce.all(kind).map(\.marks))
    }
  }

  @Test(arguments: Scenario.golden) func `gives the same periods when its samples are read in columns`(_ scenario: Scenario) {
    let vehicle = scenario.run()
    var columns = Replay()
    columns.read(vehicle.samples)
    columns.advance(to: vehicle.time)
    let atOnce = Replay(vehicle)
    #expect(columns.lines(since: vehicle.origin) == atOnce.lines(since: vehicle.origin))
    for kind in [Period.Kind.trip, .charge, .parking] {
      #expect(columns.all(kind).map(\.marks) == atOnce.all(kind).map(\.marks))
      for (one, other) in zip(columns.all(kind), atOnce.all(kind)) {
        #expect(abs((one.statistics.energy?.value ?? 0) - (other.statistics.energy?.value ?? 0)) < 1e-6)
        #expect(abs((one.statistics.charged?.value ?? 0) - (other.statistics.charged?.value ?? 0)) < 1e-6)
        #expect(abs((one.statistics.distance?.value ?? 0) - (other.statistics.distance?.value ?? 0)) < 1e-6)
      }
    }
  }

  @Test func `a reported power counts while the current is absent`() throws {
    var samples: [Sample] = []
    for second in Int64(0)..<400 {
      let time = second * 1_000_000
      // An absence is reported once.
      let isKnown = second < 100
      samples.append(Sample(time, .speed, second < 300 ? 60 : 0))
      if second <= 100 {
        samples.append(Sample(time, .batteryCurrent, isKnown ? 25 : nil))
        samples.append(Sample(time, .batteryVoltage, isKnown ? 400 : nil))
      }
      samples.append(Sample(time, .batteryPower, 10))
    }
    var (atOnce, columns) = (Replay(), Replay())
    for sample in samples { atOnce.add(sample) }
    columns.read(samples)
    for var replay in [atOnce, columns] {
      replay.finish()
      let energy = try #require(replay.trips.first?.statistics.energy)
      #expect(abs(energy.value - 10 * 399.0 / 3600) < 0.02)
    }
  }

  @Test func `the battery power is needed only where current or voltage are unknown`() {
    func needed(_ currents: [Double]) -> Bool {
      var columns = SampleColumns(offset: 0, start: 0, continues: false)
      let times = currents.indices.map { Int64($0) * 1_000_000 }
      columns.append(.batteryCurrent, at: times, currents)
      columns.append(.batteryVoltage, at: times, currents.map { _ in 400 })
      return columns.needBatteryPower(from: 0, to: 60_000_000)
    }
    #expect(!needed([Double](repeating: 20, count: 60)))
    #expect(needed([Double](repeating: 20, count: 40)))
    #expect(needed([Double](repeating: 20, count: 59) + [.nan]))
    #expect(needed([Double](repeating: 20, count: 59) + [1e9]))
  }

  @Test(arguments: Scenario.golden) func `periods are ordered and do not overlap`(_ scenario: Scenario) {
    let vehicle = scenario.run()
    let replay = Replay(vehicle)
    let uses = (replay.trips + replay.parkedPeriods).sorted { $0.start < $1.start }
    for (one, next) in zip(uses, uses.dropFirst()) { #expect(one.end == next.start, "\(scenario)") }
    for charge in replay.charges {
      #expect(replay.parkedPeriods.contains { $0.start <= charge.start && charge.end ?? .max <= $0.end ?? .max }, "\(scenario)")
    }
  }
}
