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
