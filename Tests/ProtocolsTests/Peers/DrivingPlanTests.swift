// The plan of a simulated car over years, and the car that follows it: deterministic, plausible and continuous.

import Testing

@testable import Peers
@testable import Protocols

@Suite("Driving plan") struct DrivingPlanTests {
  private static let hour = 3600 * Nanoseconds.second

  @Test func `a plan is determined by its seed`() {
    let plan = DrivingPlan(days: 60, seed: 7)
    #expect(plan.activities == DrivingPlan(days: 60, seed: 7).activities)
    #expect(plan.activities != DrivingPlan(days: 60, seed: 8).activities)
    #expect(Array(plan.activities.prefix(20)) == Array(DrivingPlan(days: 90, seed: 7).activities.prefix(20)))
  }

  @Test(arguments: 1...5) func `a year has about 400 hours of driving, and days without any`(seed: UInt64) {
    let plan = DrivingPlan(days: 365, seed: seed)
    let driving = plan.activities.filter(\.isTrip).reduce(0) { $0 + $1.end - $1.start } / Self.hour
    #expect((340...460).contains(driving), "\(driving) h")
    let days = Set(plan.activities.filter(\.isTrip).map { $0.start / (24 * Self.hour) })
    #expect((230...330).contains(days.count), "\(days.count) days")
    let powers = plan.activities.compactMap { if case .charge(let power, _) = $0.kind { power } else { nil } }
    #expect(Set(powers) == [DrivingPlan.homeCharger, DrivingPlan.fastCharger])
    for (activity, next) in zip(plan.activities, plan.activities.dropFirst()) {
      #expect(activity.start < activity.end && activity.end + 3 * 60 * .second < next.start)
      // Two trips without a charge between them are further apart than a pause of a trip.
      if activity.isTrip, next.isTrip { #expect(next.start - activity.end > 10 * 60 * .second) }
    }
  }

  @Test func `the state of the car is continuous and plausible`() {
    let plan = DrivingPlan(days: 30, seed: 3)
    var car = PlannedCar(plan, seed: 3)
    var (charge, distance, lowest) = (car.stateOfCharge, car.distance, 100.0)
    for hour in 1...(30 * 24 * 4) {
      car.advance(to: Nanoseconds(hour) * Self.hour / 4)
      // At most a fast charge, and a quarter of an hour on the motorway.
      #expect(abs(car.stateOfCharge - charge) < 45 && (0...34).contains(car.distance - distance))
      (charge, distance) = (car.stateOfCharge, car.distance)
      lowest = min(lowest, charge)
    }
    #expect(distance > 1000 && distance < 4000)
    #expect(lowest > 10, "the battery is charged in time")
  }

  @Test func `the bus is awake during activities only`() throws {
    let car = PlannedCar(DrivingPlan(days: 7, seed: 1), seed: 1)
    let trip = try #require(car.plan.activities.first)
    #expect(car.busState(at: trip.start - .second) == .dead && car.busState(at: trip.start) == .awake)
    #expect(car.busState(at: trip.end - 1) == .awake && car.busState(at: trip.end) == .silent)
    #expect(car.busState(at: trip.end + Ignition.busHoldTime) == .dead)
    #expect(car.supplyMillivolts(at: trip.start) == 14_400 && car.supplyMillivolts(at: trip.end + Self.hour) < 12_800)
  }

  @Test func `a recording is determined by its seed, and counts each polled value`() throws {
    func record(_ seed: UInt64) throws -> (samples: [String], polled: Int, polls: Int) {
      let plan = DrivingPlan(days: 1, seed: 1)
      var recording = try PlannedRecording(PlannedCar(plan, seed: seed), rate: 10, seed: seed)
      let start = try #require(plan.activities.first?.start)
      var samples = recording.run(until: start - 60 * .second)
      #expect(recording.polls == 0)
      samples += recording.run(until: start + 300 * .second)
      return (samples.map { "\($0)" }, recording.samples, recording.polls)
    }
    let one = try record(1)
    #expect(try record(1).samples == one.samples)
    #expect(try record(2).samples != one.samples)
    #expect((2500...3000).contains(one.polls), "\(one.polls) polls")
    #expect(one.polled > one.polls * 25 && one.samples.count < one.polled)
  }
}
