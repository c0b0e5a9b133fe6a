// From how a driver holds the phone to what is said to the car. A tilt that the car would take for something else is never
// said: with negative roll and negative pitch together, or a negative zero, a slip of sign in the car's own program throws
// one wheel into full reverse. So one of the two is always left out, and what counts is the number as it is printed.
// Facts: the app's GyroscopeData.m (attitude, neutral, sensitivity), SteeringWithIOSGyro in the car's Steering.py.

/// How the driver holds the phone, in radians.
struct CarAttitude: Sendable, Equatable {
  /// −π to π; positive drives ahead.
  var roll: Double
  /// −π/2 to π/2; positive turns to the right.
  var pitch: Double
  /// −π to π; the car as built reads it and does nothing with it.
  var yaw: Double

  static let level = CarAttitude(roll: 0, pitch: 0, yaw: 0)
  /// Angles that were rounded to four decimals are let through.
  private static let hair = 0.0001

  /// The argument that cannot be an angle, or nil.
  var wrongArgument: (name: String, words: String)? {
    let limits = [("roll", roll, Double.pi, "π"), ("pitch", pitch, Double.pi / 2, "π/2"), ("yaw", yaw, Double.pi, "π")]
    for (name, angle, limit, words) in limits {
      if !angle.isFinite { return (name, "\(angle) is no angle") }
      if abs(angle) > limit + Self.hair { return (name, "\(angle) rad is outside -\(words) to \(words)") }
    }
    return nil
  }

  /// What is said for it.
  func tilt(neutral: CarAttitude, sensitivity: Double) -> CarTilt {
    let level = CarAttitude(
      roll: Self.turn(from: neutral.roll, to: roll) * sensitivity, pitch: (pitch - neutral.pitch) * sensitivity,
      yaw: Self.turn(from: neutral.yaw, to: yaw) * sensitivity)
    return CarTilt(level)
  }

  /// To a millionth, as it is kept, so that it reads back the same.
  var rounded: CarAttitude {
    func rounded(_ angle: Double) -> Double { Double(CarNumber.millionths(angle) ?? 0) / CarNumber.scale }
    return CarAttitude(roll: rounded(roll), pitch: rounded(pitch), yaw: rounded(yaw))
  }

  /// The shorter way from one angle to another; a hair beyond half a turn is half a turn.
  private static func turn(from start: Double, to end: Double) -> Double {
    func within(_ angle: Double) -> Double { min(max(angle, -Double.pi), Double.pi) }
    let turn = within(end) - within(start)
    return turn > Double.pi ? turn - 2 * Double.pi : turn < -Double.pi ? turn + 2 * Double.pi : turn
  }
}

/// A set-point as it is said, in millionths of a radian. Roll and pitch are never both negative.
struct CarTilt: Sendable, Equatable {
  private(set) var roll: Int
  private(set) var pitch: Int
  private(set) var yaw: Int

  /// π and π/2, cut: what is printed is never more than the angle can be.
  private static let half = 3_141_592
  private static let quarter = 1_570_796
  /// The angles of full speed are 45° of roll and 80° of pitch; 9 : 16.
  private static let fullRoll = 9
  private static let fullPitch = 16

  /// The nearest that can be said.
  init(_ attitude: CarAttitude) {
    func millionths(_ angle: Double, _ limit: Int) -> Int {
      let bound = Double(limit) / CarNumber.scale
      return min(max(CarNumber.millionths(min(max(angle, -bound), bound)) ?? 0, -limit), limit)
    }
    roll = millionths(attitude.roll, Self.half)
    pitch = millionths(attitude.pitch, Self.quarter)
    yaw = millionths(attitude.yaw, Self.half)
    guard roll < 0, pitch < 0 else { return }
    // The part of its full speed that each of them asks for: the greater is what the driver means.
    if -roll * Self.fullPitch >= -pitch * Self.fullRoll { pitch = 0 } else { roll = 0 }
  }

  /// As one write.
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
