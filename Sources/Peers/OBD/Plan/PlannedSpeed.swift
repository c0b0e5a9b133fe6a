// The speed of a car during one planned trip: cruising, stops at junctions, and gradients. The kind of road determines how fast the car
// drives and how often it stops. The speed is computed step by step, and is determined by the seed of the trip.

import Protocols

struct PlannedSpeed: Sendable {
  /// The time from ignition on to the first motion, and from the last motion to ignition off, in s.
  static let standingTime = 15.0
  /// Accelerations in m/s².
  private static let acceleration = 1.5
  private static let braking = 1.7

  private let road: PlannedActivity.Road
  private let length: Double
  private var random: SeededRandom
  private var segmentEnd = standingTime
  /// The speed that the driver aims for, in m/s.
  private var target = 0.0
  private var hasStopped = true
  /// In m/s.
  private(set) var speed = 0.0
  /// In m/s².
  private(set) var acceleration = 0.0
  /// The gradient of the road, 0.02 for 2 %.
  private(set) var gradient = 0.0
  private var gradientTarget = 0.0
  /// Whether drive is engaged: from the end of the standing time to the beginning of the next one.
  private(set) var isInDrive = false

  init(_ road: PlannedActivity.Road, length: Double, seed: UInt64) {
    (self.road, self.length, random) = (road, length, SeededRandom(seed: seed))
  }

  /// Advances by `step`, to `time` since the start of the trip, in s.
  mutating func advance(to time: Double, step: Double) {
    let remaining = length - Self.standingTime - time
    if time >= segmentEnd { startSegment(time) }
    isInDrive = road != .stationary && time >= Self.standingTime && remaining > 0
    let setPoint = remaining <= speed / Self.braking + 1 ? 0 : target
    let change = max(-Self.braking * step, min(Self.acceleration * step, setPoint - speed))
    acceleration = change / step
    speed = max(0, speed + change)
    gradient += (gradientTarget - gradient) * step / 10
  }

  private mutating func startSegment(_ time: Double) {
    gradientTarget = random.noise(0.015)
    let (stops, speeds, duration): (Double, [Double], Double) =
      switch road {
      case .city: (0.4, [30, 50, 50, 50], 35)
      case .rural: (0.15, [50, 50, 70, 100, 100], 80)
      case .motorway: (0.01, [80, 100, 120, 130, 130], 240)
      case .constant(let speed): (0, [speed], length)
      case .stationary: (0, [0], length)
      }
    if !hasStopped, random.fraction() < stops {
      (target, hasStopped) = (0, true)
      segmentEnd = time + speed / Self.braking + 4 + random.fraction() * 35
    } else {
      let speed = speeds[Int(random.next() % UInt64(speeds.count))]
      target = max(0, speed + (speeds.count > 1 ? random.noise(4) : 0)) / 3.6
      hasStopped = false
      segmentEnd = time + duration * (0.4 + 1.2 * random.fraction())
    }
  }
}
