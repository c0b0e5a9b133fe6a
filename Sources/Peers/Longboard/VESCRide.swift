// The motion of the simulated board: a repeating ride until a host sends the first motor command, then under its control.
// Facts: textbook road load; data of an ordinary board with a rider.

import Protocols

/// A motor command of the host.
public enum VESCOrder: Sendable, Equatable {
  /// The motor current in A; 0 releases the motor.
  case current(Double)
  case brake(Double)
  /// The duty cycle, -1 to 1.
  case duty(Double)
  case handbrake(Double)
}

/// The state of a board with its rider.
struct VESCRide: Sendable {
  static let polePairs = 7.0
  static let gearRatio = 36.0 / 16
  static let wheel = 0.085
  static let cells = 10.0
  private static let mass = 80.0
  /// N per A of motor current.
  private static let push = 8.0
  private static let step: Nanoseconds = 10 * .millisecond
  /// The duration in s and the final speed in m/s of each leg.
  private static let legs: [(seconds: Double, speed: Double)] = [
    (2, 0), (4, 4), (8, 4), (4, 7.5), (12, 7.5), (5, 2), (5, 2), (3, 0), (3, -1), (2, 0),
  ]
  private static let round = legs.reduce(0) { $0 + $1.seconds }

  /// The last motor command; nil on the repeating ride.
  var order: VESCOrder?
  /// m/s.
  private(set) var speed = 0.0
  /// Distance in m: forward minus backward, and in total.
  private(set) var distance = 0.0
  private(set) var travelled = 0.0
  /// A.
  private(set) var motorCurrent = 0.0
  private(set) var inputCurrent = 0.0
  /// Ah.
  private(set) var chargeUsed = 0.0
  private(set) var chargeBack = 0.0
  private let origin: Instant
  private var at: Instant

  init(origin: Instant, at now: Instant) {
    self.origin = origin
    at = now
  }

  var voltage: Double { VESCRide.cells * (3.3 + 0.8 * charge) - 0.05 * inputCurrent }
  /// The state of charge, 0 to 1.
  var charge: Double { max(0.05, 0.85 - (chargeUsed - chargeBack) / 10) }
  var erpm: Double { speed / (.pi * VESCRide.wheel) * VESCRide.gearRatio * VESCRide.polePairs * 60 }
  /// Tachometer steps, 1/6 of an electrical revolution.
  func steps(_ metres: Double) -> Double { metres / (.pi * VESCRide.wheel) * VESCRide.gearRatio * VESCRide.polePairs * 6 }
  var duty: Double { min(max(speed / 12, -1), 1) }

  /// Advances to `now`, with limits of the motor current (A) and the speed (m/s).
  mutating func roll(to now: Instant, limit: (current: Double, speed: Double)) {
    // After a long time without calls, only the last hour is simulated.
    if now - at > 3600 * .second { at = now - 3600 * .second }
    while at + VESCRide.step <= now {
      at += VESCRide.step
      let seconds = Double(VESCRide.step) / 1e9
      let before = speed
      if let order { obey(order, seconds, limit) } else { cruise(limit) }
      distance += (before + speed) / 2 * seconds
      travelled += abs(before + speed) / 2 * seconds
      inputCurrent = motorCurrent * duty + 0.3
      if inputCurrent > 0 { chargeUsed += inputCurrent * seconds / 3600 } else { chargeBack -= inputCurrent * seconds / 3600 }
    }
  }

  private static func drag(_ speed: Double) -> Double { speed == 0 ? 0 : (speed > 0 ? 1 : -1) * (40 + 0.4 * speed * speed) }

  private mutating func cruise(_ limit: (current: Double, speed: Double)) {
    var rest = (Double(at - origin) / 1e9).truncatingRemainder(dividingBy: VESCRide.round)
    var from = 0.0
    for leg in VESCRide.legs {
      if rest < leg.seconds {
        let slope = (leg.speed - from) / leg.seconds
        speed = min(max(from + slope * rest, -limit.speed), limit.speed)
        let current = (VESCRide.mass * slope + VESCRide.drag(speed)) / VESCRide.push
        motorCurrent = min(max(current, -limit.current), limit.current)
        return
      }
      rest -= leg.seconds
      from = leg.speed
    }
  }

  private mutating func obey(_ order: VESCOrder, _ seconds: Double, _ limit: (current: Double, speed: Double)) {
    let direction = speed > 0 ? 1.0 : speed < 0 ? -1.0 : 0
    switch order {
    case .current(let current): motorCurrent = abs(speed) >= limit.speed && current * direction > 0 ? 0 : current
    case .brake(let current), .handbrake(let current): motorCurrent = -direction * current
    case .duty(let duty): motorCurrent = (duty * 12 - speed) * 20
    }
    motorCurrent = min(max(motorCurrent, -limit.current), limit.current)
    let next = speed + (motorCurrent * VESCRide.push - VESCRide.drag(speed)) / VESCRide.mass * seconds
    // A brake does not reverse the direction.
    let isHeldBack = if case .brake = order { true } else if case .handbrake = order { true } else { motorCurrent == 0 }
    speed = isHeldBack && next * direction <= 0 ? 0 : next
    if isHeldBack, speed == 0 { motorCurrent = 0 }
  }
}
