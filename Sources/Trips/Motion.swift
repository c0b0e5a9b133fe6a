// Determines whether the vehicle is moving, and whether its user has left it, from speed, motor speed, gear, ignition and device state.

struct Motion: Sendable {
  enum State { case unknown, stationary, moving }

  /// The last known state.
  private(set) var state = State.unknown
  /// When the state was last known.
  private(set) var knownAt = Int64.min
  /// When the vehicle began to move; nil while it is not moving.
  private(set) var movingSince: Int64?
  private var stationarySince: Int64?
  /// The absolute speed in km/h that determined the state; nil if the motors determined it.
  private(set) var currentSpeed: Double?
  private(set) var ignition: Bool?
  private var gear: Gear?
  private var gearSince = Int64.min
  private(set) var device = DeviceState.responding
  private var speed = Self.plausibleSpeed
  private var speedAt: Int64?
  private var fallback = Self.plausibleSpeed
  private var fallbackAt: Int64?
  private var motors: (first: Double, second: Double) = (0, 0)
  private var motorAt: Int64?
  private var engine = 0.0
  private var engineAt: Int64?
  private let movingSpeed: Double

  /// Below this speed in km/h, a moving vehicle counts as stationary.
  private static let stationarySpeed = 1.0
  /// No vehicle changes its speed by 72 km/h in a second; the slack allows for steps of 1 mph and for locked wheels.
  private static let plausibleSpeed = PlausibleValue(0...Limits.speed, slack: 15, slope: 72)

  init(movingSpeed: Double) { self.movingSpeed = movingSpeed }

  var isResponding: Bool { device == .responding }

  /// Handles a value. Returns whether it determines the state of motion.
  mutating func update(_ role: Role, _ value: Double?, at now: Int64) -> Bool {
    switch role {
    case .speed:
      guard let value else {
        speedAt = nil
        return false
      }
      guard speed.update(abs(value), at: now) else { return false }
      speedAt = now
    case .fallbackSpeed:
      guard let value else {
        fallbackAt = nil
        return false
      }
      guard fallback.update(abs(value), at: now) else { return false }
      fallbackAt = now
      guard !isFresh(speedAt, now) else { return false }
    case .motorSpeed, .secondMotorSpeed:
      if role == .motorSpeed { motors.first = abs(value ?? 0) } else { motors.second = abs(value ?? 0) }
      guard value != nil else {
        if role == .motorSpeed { motorAt = nil }
        return false
      }
      motorAt = now
      guard !isFresh(speedAt, now), !isFresh(fallbackAt, now) else { return false }
    case .engineSpeed:
      (engine, engineAt) = (value ?? 0, value == nil ? nil : now)
      return false
    case .gear:
      // A gear that is briefly unknown does not end a trip.
      if let new = value.flatMap(Gear.init(rawValue:)), new != gear { (gear, gearSince) = (new, now) }
      return false
    case .ignition:
      if let value { ignition = value != 0 }
      return false
    case .state:
      device = value.flatMap(DeviceState.init(rawValue:)) ?? .down
      return false
    default: return false
    }
    decide(now)
    return true
  }

  private func isFresh(_ time: Int64?, _ now: Int64) -> Bool { time.map { now - $0 <= Limits.sampleAge } ?? false }

  private mutating func decide(_ now: Int64) {
    let wasKnown = !isLost(at: now)
    currentSpeed = isFresh(speedAt, now) ? speed.value : isFresh(fallbackAt, now) ? fallback.value : nil
    let isMoving: Bool
    if let speed = currentSpeed {
      isMoving = speed >= (state == .moving && wasKnown ? Self.stationarySpeed : movingSpeed)
    } else {
      isMoving = gear != .park && max(motors.first, motors.second) >= Limits.motorSpeed
    }
    let new = isMoving ? State.moving : .stationary
    // A vehicle that is stationary before and after a loss of data may have moved in between.
    if new != state || !wasKnown { (stationarySince, movingSince) = isMoving ? (nil, now) : (now, nil) }
    (state, knownAt) = (new, now)
  }

  /// Resets everything except the gear and the ignition, because the clock has stepped.
  mutating func restart() {
    let (gear, ignition) = (gear, ignition)
    self = Motion(movingSpeed: movingSpeed)
    (self.gear, self.ignition) = (gear, ignition)
  }

  /// Whether the engine is turning or, as far as the speed is not known, a motor.
  func isEngineOrMotorTurning(at now: Int64) -> Bool {
    if isFresh(engineAt, now), engine > 0 { return true }
    guard !isFresh(speedAt, now), !isFresh(fallbackAt, now) else { return false }
    return isFresh(motorAt, now) && max(motors.first, motors.second) >= Limits.motorSpeed
  }

  /// How long the vehicle has been stationary, as far as the data shows.
  func stationaryTime(at now: Int64) -> Int64 {
    guard let stationarySince, !isLost(at: now) else { return 0 }
    return now - stationarySince
  }

  /// Whether the state of motion is unknown now.
  func isLost(at now: Int64) -> Bool { knownAt == .min || now - knownAt > Limits.sampleAge }

  /// Whether the data shows that the user has left the vehicle, which last moved at `lastMotion`.
  func userHasLeft(at now: Int64, lastMotion: Int64, _ rules: PeriodRules) -> Bool {
    if state != .stationary { return false }
    if ignition == false || gear == .park && now - max(gearSince, lastMotion) >= rules.parkTime { return true }
    if gear == .driving || isEngineOrMotorTurning(at: now) { return false }
    if device == .resting || device == .silent || isLost(at: now) { return true }
    return gear == nil && ignition == nil && now - lastMotion >= rules.idleTimeout
  }
}
