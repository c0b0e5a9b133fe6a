// The golden set of the history: short plans, each with one awkward drive or charge. Each starts and ends with a parked car.

import Protocols

public struct DrivingCase: Sendable, CustomStringConvertible {
  public let name: String
  public let plan: DrivingPlan
  public let outages: [PlannedOutage]
  /// What the history must find, in minutes since the start: `trip 1-31`, `charge 15-75`. Parked periods are in between.
  public let expected: [String]

  public var description: String { name }

  private init(_ name: String, _ expected: [String], _ script: (inout Script) -> Void) {
    var all = Script()
    all.park(1)
    script(&all)
    all.park(45)
    (self.name, self.expected, outages) = (name, expected, all.outages)
    plan = DrivingPlan(all.activities, length: all.now)
  }

  public static let all = [
    DrivingCase("commute", ["trip 1-31"]) { $0.drive(30, 60) },
    DrivingCase("garage-door", ["trip 1-25"]) {
      $0.drive(2, 10)
      $0.park(2)
      $0.drive(20, 50)
    },
    DrivingCase("traffic-jam", ["trip 1-31"]) {
      $0.drive(10, 80)
      $0.drive(10, 0)
      $0.drive(10, 80)
    },
    DrivingCase("shopping", ["trip 1-11", "trip 41-51"]) {
      $0.drive(10, 50)
      $0.park(30)
      $0.drive(10, 50)
    },
    DrivingCase("ferry", ["trip 1-16", "trip 56-71"]) {
      $0.drive(15, 60)
      $0.standby(40)
      $0.drive(15, 60)
    },
    DrivingCase("bluetooth-lost-90-s", ["trip 1-31"]) {
      $0.fail(.link("the connection was lost"), at: 15, 1.5)
      $0.drive(30, 60)
    },
    DrivingCase("bluetooth-lost-10-min", ["trip 1-41"]) {
      $0.fail(.link("the connection was lost"), at: 15, 10)
      $0.drive(40, 60)
    },
    DrivingCase("adapter-plugged-in-late", ["trip 12-31"]) {
      $0.fail(.link("the serial port does not exist"), at: 0, 12)
      $0.drive(30, 60)
    },
    DrivingCase("drive-without-adapter", ["trip 1-11", "trip 40-100", "trip 131-141"]) {
      $0.drive(10, 60)
      $0.fail(.link("the serial port does not exist"), at: 40, 60)
      $0.park(50)
      $0.drive(20, 80)
      $0.park(50)
      $0.drive(10, 60)
    },
    DrivingCase("power-cut", ["trip 1-31"]) {
      $0.fail(.power, at: 15, 1)
      $0.drive(30, 60)
    },
    DrivingCase("power-cut-of-an-hour", ["trip 1-91"]) {
      $0.fail(.power, at: 15, 60)
      $0.drive(90, 60)
    },
    DrivingCase("no-power-while-parked", ["trip 1-11", "trip 41-51"]) {
      $0.fail(.power, at: 11, 30)
      $0.drive(10, 50)
      $0.park(30)
      $0.drive(10, 50)
    },
    DrivingCase("night", ["trip 1-11", "trip 611-621"]) {
      $0.drive(10, 50)
      $0.park(600)
      $0.drive(10, 50)
    },
    DrivingCase("charge-between-legs", ["trip 1-31", "charge 36-56", "trip 61-91"]) {
      $0.drive(30, 110)
      $0.park(5)
      $0.charge(20, power: 150)
      $0.park(5)
      $0.drive(30, 110)
    },
    DrivingCase("charging-pause", ["trip 1-31", "charge 41-121"]) {
      $0.drive(30, 60)
      $0.park(10)
      $0.charge(30, power: 11)
      $0.standby(20)
      $0.charge(30, power: 11)
    },
    DrivingCase("two-charges", ["trip 1-31", "charge 41-71", "charge 131-161"]) {
      $0.drive(30, 60)
      $0.park(10)
      $0.charge(30, power: 11)
      $0.park(60)
      $0.charge(30, power: 11)
    },
    DrivingCase("charge-during-a-power-cut", ["trip 1-31", "charge 41-161"]) {
      $0.fail(.power, at: 60, 60)
      $0.drive(30, 60)
      $0.park(10)
      $0.charge(120, power: 11)
    },
  ]
}

/// Adds activities one after the other. Times are in minutes.
private struct Script {
  private static let minute: Nanoseconds = 60 * .second

  private(set) var now: Nanoseconds = 0
  private(set) var activities: [PlannedActivity] = []
  private(set) var outages: [PlannedOutage] = []

  /// Is switched off.
  mutating func park(_ minutes: Int) { now += Nanoseconds(minutes) * Self.minute }

  /// Drives without a stop, at this speed in km/h; 0 for a traffic jam.
  mutating func drive(_ minutes: Int, _ speed: Double) { add(.trip(.constant(speed)), minutes) }

  /// Is stationary in park, switched on.
  mutating func standby(_ minutes: Int) { add(.trip(.stationary), minutes) }

  mutating func charge(_ minutes: Int, power: Double) { add(.charge(power: power, limit: 100), minutes) }

  /// Adds an outage, `start` after the start of the plan.
  mutating func fail(_ cause: PlannedOutage.Cause, at start: Double, _ minutes: Double) {
    let begin = Nanoseconds(start * 60) * .second
    outages.append(PlannedOutage(cause: cause, start: begin, end: begin + Nanoseconds(minutes * 60) * .second))
  }

  private mutating func add(_ kind: PlannedActivity.Kind, _ minutes: Int) {
    let end = now + Nanoseconds(minutes) * Self.minute
    activities.append(PlannedActivity(kind: kind, start: now, end: end, seed: UInt64(activities.count)))
    now = end
  }
}
