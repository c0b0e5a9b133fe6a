// The properties of a position device. All units are metric; clients convert them.

/// The properties, in the order of the schema.
enum PositionProperty: Int, CaseIterable {
  case fix, latitude, longitude, speed, track, altitude, horizontalAccuracy, verticalAccuracy, fixTime
  case satellitesUsed, satellitesSeen, receiver, gpsdVersion, badMessages

  /// The properties of a fix, which expire together.
  static let ofFix: [PositionProperty] = [
    .fix, .latitude, .longitude, .speed, .track, .altitude, .horizontalAccuracy, .verticalAccuracy, .fixTime,
  ]

  /// The lifetime of the number of satellites: some receivers report the sky only every few seconds.
  static let skyLifetime: Nanoseconds = 15 * .second

  /// The plausible range.
  var range: ClosedRange<Double>? {
    switch self {
    case .latitude: -90...90
    case .longitude: -180...180
    case .speed: 0...2000
    case .track: 0...360
    case .altitude: -1000...50_000
    case .horizontalAccuracy, .verticalAccuracy: 0...100_000
    case .satellitesUsed, .satellitesSeen: 0...200
    case .fix, .fixTime, .receiver, .gpsdVersion, .badMessages: nil
    }
  }

  /// The schema's properties; a fix is valid for `maxAge` nanoseconds.
  static func table(maxAge: Nanoseconds) -> [Property] {
    allCases.map { item in
      var property = item.declaration
      switch item {
      // The coordinates are not in the headline, because a summary is often shown to others, and rounds its values.
      case .fix, .speed, .satellitesUsed: property.rank = .headline
      case .receiver, .gpsdVersion: property.rank = .detail
      case .badMessages: property.rank = .statistic
      default: break
      }
      switch item {
      case .gpsdVersion: property.group = .adapter
      case .badMessages: property.group = .statistics
      default: property.group = .position
      }
      if ofFix.contains(item) { property.lifetime = .fresh(maxAge) }
      return property
    }
  }

  private var declaration: Property {
    switch self {
    case .fix:
      Property("fix", .string, choices: GPSDFix.Mode.allCases.map(\.name), help: "Type of the fix: none, 2d (without altitude) or 3d")
    case .latitude: Property("latitude", .float, unit: "°", range: range, help: "Latitude, north positive (WGS 84)")
    case .longitude: Property("longitude", .float, unit: "°", range: range, help: "Longitude, east positive (WGS 84)")
    case .speed: Property("speed", .float, unit: "km/h", range: range, help: "Speed over ground")
    case .track: Property("track", .float, unit: "°", range: range, help: "Course over ground, clockwise from true north")
    case .altitude: Property("altitude", .float, unit: "m", range: range, help: "Altitude above mean sea level")
    case .horizontalAccuracy: Property("horizontal-accuracy", .float, unit: "m", range: range, help: "Estimated horizontal error")
    case .verticalAccuracy: Property("vertical-accuracy", .float, unit: "m", range: range, help: "Estimated vertical error")
    case .fixTime: Property("fix-time", .string, help: "Time of the fix, from the satellites (UTC)")
    case .satellitesUsed:
      Property("satellites-used", .int, range: range, lifetime: .fresh(Self.skyLifetime), help: "Satellites used for the fix")
    case .satellitesSeen: Property("satellites-seen", .int, range: range, lifetime: .fresh(Self.skyLifetime), help: "Satellites in view")
    case .receiver: Property("receiver", .string, lifetime: .whileUp, help: "Path of the receiver in gpsd")
    case .gpsdVersion: Property("gpsd-version", .string, lifetime: .whileUp, help: "Version of gpsd")
    case .badMessages: Property("bad-messages", .int, lifetime: .retained, help: "Lines of gpsd that could not be parsed")
    }
  }
}
