// What a car does over days or years: trips, charges, and parking in between. The plan is a pure function of its seed. It covers about
// 400 h of driving a year: commutes, errands, excursions, now and then a long journey with fast charges, and days without a trip.

import Protocols

/// A trip or a charge of a plan. In between, the car is parked and its bus is down.
public struct PlannedActivity: Sendable, Equatable {
  /// The kind of road, which determines speeds and stops.
  public enum Road: Sendable, Equatable {
    case city, rural, motorway
    /// Without stops at this speed in km/h; 0 for a traffic jam.
    case constant(Double)
    /// Stationary in park, switched on.
    case stationary
  }

  public enum Kind: Sendable, Equatable {
    case trip(Road)
    /// A charge with at most this power in kW, up to this state of charge in %.
    case charge(power: Double, limit: Double)
  }

  public var kind: Kind
  /// When the activity starts, since the start of the plan.
  public var start: Nanoseconds
  /// When the activity ends, since the start of the plan. A charge ends earlier if it reaches its limit.
  public var end: Nanoseconds
  /// The seed of the random events during the activity.
  var seed: UInt64

  public var isTrip: Bool { if case .trip = kind { true } else { false } }
}

/// The activities of some days, in chronological order.
public struct DrivingPlan: Sendable {
  public let activities: [PlannedActivity]
  /// The length of the plan.
  public let length: Nanoseconds

  static let homeCharger = 11.0  // kW
  static let fastCharger = 150.0  // kW
  /// The battery capacity of `PlannedCar` in kWh.
  static let batteryEnergy = 82.0

  /// Creates the plan of this many days. Day 0 is a Monday if `firstWeekday` is 0.
  public init(days: Int, seed: UInt64, firstWeekday: Int = 0) {
    var planner = Planner(random: SeededRandom(seed: seed))
    for day in 0..<days { planner.addDay(day, weekday: (firstWeekday + day) % 7) }
    activities = planner.activities
    length = Nanoseconds(days) * Planner.day
  }

  /// Creates a plan of these activities, which must be in chronological order and must not overlap.
  init(_ activities: [PlannedActivity], length: Nanoseconds) { (self.activities, self.length) = (activities, length) }

  /// The index of the last activity that has started at this time, or nil before the first one.
  func index(at time: Nanoseconds) -> Int? {
    var (low, high) = (0, activities.count)
    while low < high {
      let middle = (low + high) / 2
      if activities[middle].start <= time { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? low - 1 : nil
  }
}

/// Adds the days one by one. It estimates the state of charge, and adds a charge at home when the estimate is low.
private struct Planner {
  static let day: Nanoseconds = 86_400 * .second
  private static let minute: Nanoseconds = 60 * .second

  var random: SeededRandom
  var activities: [PlannedActivity] = []
  /// The estimated state of charge in %.
  private var charge = 80.0
  private var now: Nanoseconds = 0

  init(random: SeededRandom) { self.random = random }

  mutating func addDay(_ number: Int, weekday: Int) {
    let start = Nanoseconds(number) * Self.day
    now = max(now, start)
    func at(_ hour: Double) -> Nanoseconds { start + Nanoseconds(hour * 3600) * .second }
    switch weekday {
    case 0...4:
      guard happens(0.88) else { break }
      addTrip(.rural, at: at(7.2 + spread(0.3)), minutes: 32 + spread(8))
      addTrip(.rural, at: at(16.6 + spread(0.8)), minutes: 36 + spread(11))
      if happens(0.25) { addErrand(at: at(18.6 + spread(0.5)), minutes: 12 + spread(4)) }
    case 5:
      guard happens(0.7) else { break }
      addErrand(at: at(10 + spread(1)), minutes: 18 + spread(8))
      if happens(0.4) { addErrand(at: at(15 + spread(1)), minutes: 14 + spread(5)) }
    default:
      if happens(0.12) {
        addJourney(at: at(8 + spread(1)))
      } else if happens(0.4) {
        addTrip(.rural, at: at(10.5 + spread(1)), minutes: 65 + spread(25))
        addTrip(.rural, at: now + hours(3 + spread(1)), minutes: 65 + spread(25))
      }
    }
    if charge < 45 { addCharge(at: now + 20 * Self.minute, power: DrivingPlan.homeCharger, limit: 80) }
  }

  /// Two short trips in the city with a stop between them.
  private mutating func addErrand(at start: Nanoseconds, minutes: Double) {
    addTrip(.city, at: start, minutes: minutes)
    addTrip(.city, at: now + Nanoseconds(35 + spread(15)) * Self.minute, minutes: minutes + spread(2))
  }

  /// A long journey, out and back, with a fast charge after each leg except the last.
  private mutating func addJourney(at start: Nanoseconds) {
    for leg in 0..<4 {
      addTrip(.motorway, at: leg == 0 ? start : now + (leg == 2 ? hours(2) : 12 * Self.minute), minutes: 75 + spread(15))
      if leg < 3 { addCharge(at: now + 4 * Self.minute, power: DrivingPlan.fastCharger, limit: 75) }
    }
  }

  /// Adds a trip, at least 11 min after the previous activity.
  private mutating func addTrip(_ road: PlannedActivity.Road, at start: Nanoseconds, minutes: Double) {
    let start = activities.isEmpty ? start : max(start, now + 11 * Self.minute)
    add(.trip(road), from: start, to: start + Nanoseconds(minutes * 60) * .second)
    let estimate = road.estimate
    charge = max(10, charge - minutes / 60 * estimate.speed * estimate.consumption / DrivingPlan.batteryEnergy * 100)
  }

  /// Adds a charge with enough time to reach the limit.
  private mutating func addCharge(at start: Nanoseconds, power: Double, limit: Double) {
    guard charge < limit - 10 else { return }
    // The power of a fast charge decreases, and the state of charge is only an estimate.
    let time = (limit - charge + 15) / 100 * DrivingPlan.batteryEnergy / (power * (power > 50 ? 0.6 : 0.9))
    add(.charge(power: power, limit: limit), from: start, to: start + hours(time))
    charge = limit
  }

  private mutating func add(_ kind: PlannedActivity.Kind, from start: Nanoseconds, to end: Nanoseconds) {
    activities.append(PlannedActivity(kind: kind, start: start, end: end, seed: random.next()))
    now = end
  }

  private func hours(_ number: Double) -> Nanoseconds { Nanoseconds(number * 3600) * .second }
  private mutating func happens(_ probability: Double) -> Bool { random.fraction() < probability }
  /// A number from -width to width; those near 0 are more probable.
  private mutating func spread(_ width: Double) -> Double { (random.fraction() + random.fraction() - 1) * width }
}

extension PlannedActivity.Road {
  /// The mean speed in km/h and consumption in kWh per km, for the estimate.
  fileprivate var estimate: (speed: Double, consumption: Double) {
    switch self {
    case .city: (28, 0.16)
    case .rural: (55, 0.16)
    case .motorway: (100, 0.24)
    case .constant(let speed): (speed, 0.2)
    case .stationary: (0, 0)
    }
  }
}

extension SeededRandom {
  /// A number from 0 to 1.
  mutating func fraction() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }
  /// A number with a mean of 0 and about this standard deviation: the sum of two uniform ones.
  mutating func noise(_ deviation: Double) -> Double { (fraction() + fraction() - 1) * 2.449 * deviation }
}
