// Whether the vehicle moves, and what shows that its user has left it: speed, motor speed, gear, ignition, and the state of the device.

struct Motion: Sendable {
  enum State { case unknown, standing, moving }

  /// The last known state, and when it was known.
  private(set) var state = State.unknown
  private(set) var knownAt = Int64.min
  /// When the current stretch of motion began.
  private(set) var movingSince: Int64?
  private var standingSince: Int64?
  /// The speed that the state is known from, in km/h without sign; nil if it is known from the motors.
  private(set) var currentSpeed: Double?
  private(set) var ignition: Bool?
  private var gear: Gear?
  private var gearSince = Int64.min
  private var device = DeviceState.responding
  private var speed = Self.plausibleSpeed
  private var speedAt: Int64?
  private var backup = Self.plausibleSpeed
  private var backupAt: Int64?
  private var motors: (first: Double, second: Double) = (0, 0)
  private var motorAt: Int64?
  private var engine = 0.0
  private var engineAt: Int64?
  private let movingSpeed: Double

  /// Below this speed a moving vehicle stands, in km/h.
  private static let standingSpeed = 1.0
  /// Below this speed a motor stands, in rpm.
  private static let minMotorSpeed = 30.0
  /// 72 km/h in a second is more than any vehicle achieves; the slack covers steps of 1 mph and wheels that lock.
  private static let plausibleSpeed = PlausibleValue(0...500, slack: 15, slope: 72)

  init(movingSpeed: Double) { self.movingSpeed = movingSpeed }

  var isResponding: Bool { device == .responding }

  /// Handles a value; returns whether the state of motion is known from it.
  mutating func update(_ role: Role, _ value: Double?, at now: Int64) -> Bool {
    switch role {
    case .speed:
      guard let value else {
        speedAt = nil
        return false
      }
      guard speed.update(abs(value), at: now) else { return false }
      speedAt = now
    case .speedBackup:
      guard let value else {
        backupAt = nil
        return false
      }
      guard backup.update(abs(value), at: now) else { return false }
      backupAt = now
      guard !isFresh(speedAt, now) else { return false }
    case .motorSpeed, .secondMotorSpeed:
      if role == .motorSpeed { motors.first = abs(value ?? 0) } else { motors.second = abs(value ?? 0) }
      guard value != nil else {
        if role == .motorSpeed { motorAt = nil }
        return false
      }
      motorAt = now
      guard !isFresh(speedAt, now), !isFresh(backupAt, now) else { return false }
    case .engineSpeed:
      (engine, engineAt) = (value ?? 0, value == nil ? nil : now)
      return false
    case .gear:
      // A gear that is unknown for a moment does not end a trip.
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
    currentSpeed = isFresh(speedAt, now) ? speed.value : isFresh(backupAt, now) ? backup.value : nil
    let moves: Bool
    if let speed = currentSpeed {
      moves = speed >= (state == .moving && wasKnown ? Self.standingSpeed : movingSpeed)
    } else {
      moves = gear != .park && max(motors.first, motors.second) >= Self.minMotorSpeed
    }
    let new = moves ? State.moving : .standing
    // A vehicle that stands before and after a loss of data may have moved between.
    if new != state || !wasKnown { (standingSince, movingSince) = moves ? (nil, now) : (now, nil) }
    (state, knownAt) = (new, now)
  }

  /// Forgets everything but the gear and the ignition: the time has changed.
  mutating func restart() {
    let (gear, ignition) = (gear, ignition)
    self = Motion(movingSpeed: movingSpeed)
    (self.gear, self.ignition) = (gear, ignition)
  }

  /// Whether an engine or a motor turns.
  func turns(at now: Int64) -> Bool {
    isFresh(engineAt, now) && engine > 0 || isFresh(motorAt, now) && max(motors.first, motors.second) >= Self.minMotorSpeed
  }

  /// How long the vehicle has been standing, as far as data shows it.
  func standingTime(at now: Int64) -> Int64 {
    guard let standingSince, !isLost(at: now) else { return 0 }
    return now - standingSince
  }

  /// Whether no state of motion is known now.
  func isLost(at now: Int64) -> Bool { knownAt == .min || now - knownAt > Limits.sampleAge }

  /// Whether something shows that the user has left the vehicle, which moved last at `lastMotion`.
  func isLeft(at now: Int64, lastMotion: Int64, _ rules: PeriodRules) -> Bool {
    if state != .standing { return false }
    if ignition == false || gear == .park && now - max(gearSince, lastMotion) >= rules.parkTime { return true }
    if gear == .driving || turns(at: now) { return false }
    if device == .resting || device == .silent || isLost(at: now) { return true }
    return gear == nil && ignition == nil && now - lastMotion >= rules.idleTimeout
  }
}
