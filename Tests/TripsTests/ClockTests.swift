// Periods and the clock: midnight does not matter, a step of the clock ends all periods.

import Testing
import Trips

@Suite("Periods and the clock") struct ClockTests {
  private static let year: Int64 = 365 * 86_400

  @Test func `a trip across midnight and a change of the local time is one trip`() {
    // 2026-10-25 00:50 UTC, ten minutes before the end of summer time in Europe; 23:50 UTC for midnight.
    for start: Int64 in [1_792_889_400, 1_792_972_200] {
      var vehicle = SimulatedVehicle(.eGMP, start: start)
      vehicle.park(60)
      vehicle.drive(1800, 60)
      vehicle.park(400)
      #expect(Replay(vehicle).lines(since: start * 1_000_000) == ["parking 0-60", "trip 60-1859", "parking 1859-open"])
    }
  }

  @Test(arguments: [56 * year, -56 * year, -3600]) func `a step of the clock ends the trip, which continues as another one`(_ step: Int64) {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.park(60)
    vehicle.drive(600, 60)
    vehicle.stepClock(step)
    vehicle.drive(600, 60)
    vehicle.park(400)
    let replay = Replay(vehicle)
    #expect(replay.trips.count == 2)
    #expect(replay.periods.values.allSatisfy { ($0.end ?? $0.start) - $0.start < 3600 * 1_000_000 })
    let (early, late) = (replay.trips.min { $0.id < $1.id }, replay.trips.max { $0.id < $1.id })
    #expect(early?.marks == .clockStep && late?.marks == [])
    for trip in replay.trips {
      #expect(abs((trip.statistics.distance?.value ?? 0) - 10) < 0.2)
      #expect(trip.end.map { $0 - trip.start == 599_000_000 } == true)
    }
  }

  @Test(arguments: [56 * year, -56 * year]) func `a step of the clock ends a charge`(_ step: Int64) {
    var vehicle = SimulatedVehicle(.eGMP)
    vehicle.plugIn(600, kilowatts: 10)
    vehicle.stepClock(step)
    vehicle.plugIn(600, kilowatts: 10)
    vehicle.park(2400)
    let charges = Replay(vehicle).charges
    #expect(charges.count == 2)
    #expect(charges.allSatisfy { ($0.end ?? .max) - $0.start < 700_000_000 })
  }

  @Test func `times that would overflow a calculation are ignored`() {
    var replay = Replay()
    for time in [Int64.min, .max, 0, .max, 5, .min] { replay.add(Sample(time, .speed, 0)) }
    #expect(replay.periods.count == 1)
  }
}
