// The motion of the simulated board: a repeating ride, until the host sends the first motor command; from then on, the host controls the
// motor.
// Source: the textbook road-load equation, with data of an ordinary board and rider.

import Protocols

/// A motor command of the host.
public enum VESCMotorCommand: Sendable, Equatable {
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
  /// The wheel diameter in m.
  static let wheelDiameter = 0.085
  static let cells = 10.0  // in series
  private static let mass = 80.0  // kg
  /// The driving force in N per A of motor current.
  private static let forcePerAmpere = 8.0
  private static let step: Nanoseconds = 10 * .millisecond
  /// The duration in s and the final speed in m/s of each leg.
  private static let legs: [(seconds: Double, speed: Double)] = [
    (2, 0), (4, 4), (8, 4), (4, 7.5), (12, 7.5), (5, 2), (5, 2), (3, 0), (3, -1), (2, 0),
  ]
  private static let cycleDuration = legs.reduce(0) { $0 + $1.seconds }

  /// The last motor command, or nil on the repeating ride.
  var command: VESCMotorCommand?
  /// The speed in m/s; negative is backwards.
  private(set) var speed = 0.0
  /// The net distance in m: backward motion counts as negative.
  private(set) var distance = 0.0
  /// The total distance in m, forward and backward.
  private(set) var travelled = 0.0
  /// The motor current in A.
  private(set) var motorCurrent = 0.0
  /// The current drawn from the battery, in A.
  private(set) var inputCurrent = 0.0
  /// The charge drawn from the battery, in Ah.
  private(set) var chargeUsed = 0.0
  /// The charge returned to the battery, in Ah.
  private(set) var chargeRegenerated = 0.0
  private let origin: Instant
  /// The time until which the motion has been simulated.
  private var time: Instant

  init(origin: Instant, at now: Instant) {
    self.origin = origin
    time = now
  }

  /// The pack voltage in V.
  var voltage: Double { VESCRide.cells * (3.3 + 0.8 * stateOfCharge) - 0.05 * inputCurrent }
  /// The state of charge, 0 to 1.
  var stateOfCharge: Double { max(0.05, 0.85 - (chargeUsed - chargeRegenerated) / 10) }
  var erpm: Double { speed / (.pi * VESCRide.wheelDiameter) * VESCRide.gearRatio * VESCRide.polePairs * 60 }
  /// Converts a distance to tachometer steps. One step is 1/6 of an electrical revolution.
  func tachometerSteps(_ metres: Double) -> Double { metres / (.pi * VESCRide.wheelDiameter) * VESCRide.gearRatio * VESCRide.polePairs * 6 }
  /// The duty cycle, -1 to 1.
  var duty: Double { min(max(speed / 12, -1), 1) }

  /// Advances to `now`, with limits of the motor current (A) and the speed (m/s).
  mutating func advance(to now: Instant, limit: (current: Double, speed: Double)) {
    // After a long time without calls, only the last hour is simulated.
    if now - time > 3600 * .second { time = now - 3600 * .second }
    while time + VESCRide.step <= now {
      time += VESCRide.step
      let seconds = Double(VESCRide.step) / 1e9
      let speedBefore = speed
      if let command { execute(command, seconds, limit) } else { followCycle(limit) }
      distance += (speedBefore + speed) / 2 * seconds
      travelled += abs(speedBefore + speed) / 2 * seconds
      inputCurrent = motorCurrent * duty + 0.3
      if inputCurrent > 0 { chargeUsed += inputCurrent * seconds / 3600 } else { chargeRegenerated -= inputCurrent * seconds / 3600 }
    }
  }

  private static func drag(_ speed: Double) -> Double { speed == 0 ? 0 : (speed > 0 ? 1 : -1) * (40 + 0.4 * speed * speed) }

  private mutating func followCycle(_ limit: (current: Double, speed: Double)) {
    var rest = (Double(time - origin) / 1e9).truncatingRemainder(dividingBy: VESCRide.cycleDuration)
    var from = 0.0
    for leg in VESCRide.legs {
      if rest < leg.seconds {
        let slope = (leg.speed - from) / leg.seconds
        speed = min(max(from + slope * rest, -limit.speed), limit.speed)
        let current = (VESCRide.mass * slope + VESCRide.drag(speed)) / VESCRide.forcePerAmpere
        motorCurrent = min(max(current, -limit.current), limit.current)
        return
      }
      rest -= leg.seconds
      from = leg.speed
    }
  }

  private mutating func execute(_ command: VESCMotorCommand, _ seconds: Double, _ limit: (current: Double, speed: Double)) {
    let direction = speed > 0 ? 1.0 : speed < 0 ? -1.0 : 0
    switch command {
    case .current(let current): motorCurrent = abs(speed) >= limit.speed && current * direction > 0 ? 0 : current
    case .brake(let current), .handbrake(let current): motorCurrent = -direction * current
    case .duty(let duty): motorCurrent = (duty * 12 - speed) * 20
    }
    motorCurrent = min(max(motorCurrent, -limit.current), limit.current)
    let next = speed + (motorCurrent * VESCRide.forcePerAmpere - VESCRide.drag(speed)) / VESCRide.mass * seconds
    // A brake or a released motor does not reverse the direction.
    let cannotReverse = if case .brake = command { true } else if case .handbrake = command { true } else { motorCurrent == 0 }
    speed = cannotReverse && next * direction <= 0 ? 0 : next
    if cannotReverse, speed == 0 { motorCurrent = 0 }
  }
}
