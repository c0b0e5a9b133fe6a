// The motor setpoints of the simulated car, and their calculation from the tilt of the phone. The sign error in one quadrant and the
// value of pi are the original's.
// Source: Steering.py of task123/AutoTT, which uses the exact pi for the angle, and 3.14 for the limits of roll and pitch.
//
//   a = atan2(pitch, roll) in degrees     s = length of (roll / 45°, pitch / 80°), at most 1, and 0 below 3.5° / 45°
//     0 …   90   left 100 s, right left·(1 - a/45)          90 …  180   right -100 s, left -right·(1 - (a - 90)/45)
//   -90 …    0   right 100 s, left right·(1 + a/45)       -180 …  -90   left -100 s, right -left·(1 + (a - 90)/45)  <- sign error

/// The speeds of both sides in % of full speed; negative is backwards. Values beyond ±100 saturate the motors.
public struct CarWheels: Sendable, Equatable {
  public var left: Double
  public var right: Double

  /// Creates setpoints.
  public init(left: Double, right: Double) { (self.left, self.right) = (left, right) }

  /// Both sides stopped.
  public static let still = CarWheels(left: 0, right: 0)

  private static let pi = 3.14
  private static let fullRoll = 45.0 * pi / 180
  private static let fullPitch = 80.0 * pi / 180
  private static let minRoll = 3.5 * pi / 180

  /// Calculates setpoints from an attitude in rad. NaN gives standstill.
  public init(roll: Double, pitch: Double) {
    let angle = CarWheels.arcTangent(pitch, roll) * (180 / Double.pi)
    let (along, across) = (roll / CarWheels.fullRoll, pitch / CarWheels.fullPitch)
    var speed = (along * along + across * across).squareRoot()
    if speed > 1 { speed = 1 } else if speed < CarWheels.minRoll / CarWheels.fullRoll { speed = 0 }
    self = .still
    switch angle {
    case 0...90:
      left = 100 * speed
      right = left * (1 - angle / 45)
    case -90..<0:
      right = 100 * speed
      left = right * (1 + angle / 45)
    case 90...180:
      right = -100 * speed
      left = -right * (1 - (angle - 90) / 45)
    case -180 ..< -90:
      left = -100 * speed
      right = -left * (1 + (angle - 90) / 45)
    default: break
    }
  }

  /// `50.96 50.96`: left, then right.
  public var text: String { "\(left.fixed(2)) \(right.fixed(2))" }

  /// atan2 as in C, including signed zeros and infinities, with an error of about 1e-15.
  static func arcTangent(_ y: Double, _ x: Double) -> Double {
    if y.isNaN || x.isNaN { return .nan }
    let (height, width) = (abs(y), abs(x))
    var angle: Double
    if height == 0 {
      angle = 0
    } else if height.isInfinite {
      angle = width.isInfinite ? .pi / 4 : .pi / 2
    } else {
      angle = height > width ? .pi / 2 - arcTangentOfFraction(width / height) : arcTangentOfFraction(height / width)
    }
    if x.sign == .minus { angle = .pi - angle }
    return y.sign == .minus ? -angle : angle
  }

  /// The arctangent of 0 to 1: halves the angle three times, then uses the power series.
  private static func arcTangentOfFraction(_ tangent: Double) -> Double {
    var rest = tangent
    for _ in 0..<3 { rest /= 1 + (1 + rest * rest).squareRoot() }
    let square = rest * rest
    var sum = 0.0
    for odd in stride(from: 21, through: 1, by: -2) { sum = 1 / Double(odd) - square * sum }
    return 8 * rest * sum
  }
}

extension Double {
  /// Formats with a fixed number of decimals, like Python; a zero has no sign.
  func fixed(_ places: Int) -> String {
    guard isFinite, abs(self) < 1e12 else { return isNaN ? "nan" : self < 0 ? "-inf" : "inf" }
    let unit = (0..<places).reduce(1) { power, _ in power * 10 }
    let units = Int((abs(self) * Double(unit)).rounded(.toNearestOrEven))
    let decimals = String(units % unit + unit).dropFirst()
    return "\(self < 0 && units > 0 ? "-" : "")\(units / unit)\(places > 0 ? "." : "")\(decimals)"
  }
}
