// Converts a phone attitude (its orientation: roll, pitch, yaw), as requested by the driver, to a tilt message. If both roll and pitch are
// negative, or one is a negative zero, a sign error in the car's program drives one wheel in full reverse. So one of the two angles is then
// sent as zero. The check uses the rounded numbers that are sent.
// Source: the app's GyroscopeData.m (attitude, neutral, sensitivity), SteeringWithIOSGyro in the car's Steering.py.

/// The attitude (orientation) of the phone that the driver requests, in radians.
struct PhoneAttitude: Sendable, Equatable {
  /// −π to π; positive is forward.
  let roll: Double
  /// −π/2 to π/2; positive is right.
  let pitch: Double
  /// −π to π; an as-built car ignores it.
  let yaw: Double

  init(roll: Double, pitch: Double, yaw: Double) { (self.roll, self.pitch, self.yaw) = (roll, pitch, yaw) }

  static let level = PhoneAttitude(roll: 0, pitch: 0, yaw: 0)
  /// The tolerance for angles that were rounded to four decimals.
  private static let tolerance = 0.0001

  /// Parses the arguments of the action `tilt`.
  static func parse(_ arguments: [String: Value]) -> Result<PhoneAttitude, CommandError> {
    guard let roll = arguments["roll"]?.number, let pitch = arguments["pitch"]?.number else {
      return .failure(.invalid(argument: arguments["roll"]?.number == nil ? "roll" : "pitch", "is missing: give it in rad"))
    }
    let attitude = PhoneAttitude(roll: roll, pitch: pitch, yaw: arguments["yaw"]?.number ?? 0)
    if let (name, message) = attitude.wrongArgument { return .failure(.invalid(argument: name, message)) }
    return .success(attitude)
  }

  /// The first invalid argument, and why; nil if all are valid.
  var wrongArgument: (name: String, message: String)? {
    let limits = [("roll", roll, Double.pi, "π"), ("pitch", pitch, Double.pi / 2, "π/2"), ("yaw", yaw, Double.pi, "π")]
    for (name, angle, limit, limitText) in limits {
      if !angle.isFinite { return (name, "\(angle) is not a valid angle") }
      if abs(angle) > limit + Self.tolerance { return (name, "\(angle) rad is outside -\(limitText) to \(limitText)") }
    }
    return nil
  }

  /// The message for this attitude, relative to the neutral position and multiplied by the sensitivity.
  func tilt(neutral: PhoneAttitude, sensitivity: Double) -> CarTilt {
    let relative = PhoneAttitude(
      roll: Self.turn(from: neutral.roll, to: roll) * sensitivity, pitch: (pitch - neutral.pitch) * sensitivity,
      yaw: Self.turn(from: neutral.yaw, to: yaw) * sensitivity)
    return CarTilt(relative)
  }

  /// This attitude with the angle of one property (`neutral-roll`, `neutral-pitch` or `neutral-yaw`) replaced.
  func with(_ property: CarProperty, _ angle: Double) -> PhoneAttitude {
    switch property {
    case .neutralRoll: PhoneAttitude(roll: angle, pitch: pitch, yaw: yaw)
    case .neutralPitch: PhoneAttitude(roll: roll, pitch: angle, yaw: yaw)
    default: PhoneAttitude(roll: roll, pitch: pitch, yaw: angle)
    }
  }

  /// Parses a stored attitude; nil if it is corrupt.
  init?(stored text: String) {
    let angles = text.split(separator: " ").compactMap(CarNumber.read)
    guard angles.count == 3 else { return nil }
    (roll, pitch, yaw) = (angles[0], angles[1], angles[2])
    if wrongArgument != nil { return nil }
  }

  /// The angles as stored: `0.100000 -0.250000 3.141600`.
  var stored: String {
    var bytes: [UInt8] = []
    for angle in [roll, pitch, yaw] {
      if !bytes.isEmpty { bytes.append(0x20) }
      CarNumber.write(CarNumber.millionths(angle) ?? 0, to: &bytes)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The shorter rotation from one angle to the other, −π to π; both angles are first limited to this range.
  private static func turn(from start: Double, to end: Double) -> Double {
    func within(_ angle: Double) -> Double { min(max(angle, -Double.pi), Double.pi) }
    let turn = within(end) - within(start)
    return turn > Double.pi ? turn - 2 * Double.pi : turn < -Double.pi ? turn + 2 * Double.pi : turn
  }
}

/// A tilt message, in millionths of a radian. Roll and pitch are never both negative.
struct CarTilt: Sendable, Equatable {
  private(set) var roll: Int
  private(set) var pitch: Int
  private(set) var yaw: Int

  // π and π/2, truncated: the sent number never exceeds the maximum.
  private static let halfTurn = 3_141_592
  private static let quarterTurn = 1_570_796
  // Full speed is at 45° of roll and at 80° of pitch, a ratio of 9 : 16.
  private static let fullRoll = 9
  private static let fullPitch = 16

  /// The valid message that is nearest to an attitude.
  init(_ attitude: PhoneAttitude) {
    func millionths(_ angle: Double, _ limit: Int) -> Int {
      let bound = Double(limit) / CarNumber.scale
      return min(max(CarNumber.millionths(min(max(angle, -bound), bound)) ?? 0, -limit), limit)
    }
    roll = millionths(attitude.roll, Self.halfTurn)
    pitch = millionths(attitude.pitch, Self.quarterTurn)
    yaw = millionths(attitude.yaw, Self.halfTurn)
    guard roll < 0, pitch < 0 else { return }
    // Keep the angle that is the larger fraction of full speed.
    if -roll * Self.fullPitch >= -pitch * Self.fullRoll { pitch = 0 } else { roll = 0 }
  }

  /// The frame, for one write.
  func frame(_ dialect: CarDialect) -> [UInt8] {
    var bytes = CarFrame.opened("Gyro")
    bytes.reserveCapacity(64)
    for (index, angle) in [roll, pitch, yaw].enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ";")) }
      if dialect == .asBuilt { bytes.append(0x20) }
      CarNumber.write(angle, to: &bytes)
    }
    CarFrame.close(&bytes, dialect)
    return bytes
  }
}
