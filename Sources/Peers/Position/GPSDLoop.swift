// The loop that the simulated receiver drives: a square of 1 km, clockwise from its south-western corner, at a constant speed.

import Protocols

/// The drive of a simulated receiver.
public struct GPSDLoop: Sendable {
  /// The latitude of the south-western corner in degrees.
  public var latitude: Double
  /// The longitude of the south-western corner in degrees.
  public var longitude: Double
  /// The speed in km/h.
  public var speed: Double

  /// Creates a loop. The defaults are in Trondheim.
  public init(latitude: Double = 63.43, longitude: Double = 10.39, speed: Double = 50) {
    (self.latitude, self.longitude, self.speed) = (latitude, longitude, speed)
  }

  /// The length of a side in m.
  private static let side = 1000.0
  /// The length of a degree of latitude in m.
  private static let degree = 111_320.0

  struct Point {
    var latitude: Double
    var longitude: Double
    var track: Double
  }

  /// Returns the position and the track at this time in s since the start.
  func point(at seconds: Double) -> Point {
    let distance = (speed / 3.6 * seconds).truncatingRemainder(dividingBy: 4 * Self.side)
    let part = distance.truncatingRemainder(dividingBy: Self.side)
    let (north, east, track) =
      switch Int(distance / Self.side) {
      case 0: (part, 0.0, 0.0)
      case 1: (Self.side, part, 90.0)
      case 2: (Self.side - part, Self.side, 180.0)
      default: (0.0, Self.side - part, 270.0)
      }
    let longitude = longitude + east / (Self.degree * max(0.01, Self.cosine(latitude / 180 * .pi)))
    return Point(
      latitude: min(latitude + north / Self.degree, 90), longitude: longitude > 180 ? longitude - 360 : longitude, track: track)
  }

  /// The cosine of an angle between -π/2 and π/2, as a Taylor series.
  private static func cosine(_ angle: Double) -> Double {
    let square = angle * angle
    return 1 - square / 2 * (1 - square / 12 * (1 - square / 30 * (1 - square / 56 * (1 - square / 90))))
  }
}
