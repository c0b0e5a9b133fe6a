// The properties that every device of kind can has besides its signals.

enum CANBusProperty: Int, CaseIterable, Sendable {
  case adapter, frameRate, busLoad, frames, errorFrames, badMessages

  static let names = Set(allCases.map(\.property.name))
  static var table: [Property] { allCases.map(\.property) }

  private var property: Property {
    switch self {
    case .adapter: Property("adapter", .string, lifetime: .whileUp, group: .adapter, rank: .detail, help: "CAN adapter")
    case .frameRate:
      Property("frame-rate", .int, unit: "Hz", lifetime: .whileUp, group: .statistics, rank: .detail, help: "Frames per second")
    case .busLoad:
      Property(
        "bus-load", .float, unit: "%", range: 0...100, lifetime: .whileUp, group: .statistics, rank: .detail,
        help: "Maximum share of time in which the bus carries frames: the number of stuff bits is not known")
    case .frames:
      Property("frames", .int, lifetime: .retained, group: .statistics, rank: .statistic, help: "Received frames")
    case .errorFrames:
      Property(
        "error-frames", .int, lifetime: .retained, group: .statistics, rank: .statistic,
        help: "Errors on the bus that the interface reported")
    case .badMessages:
      Property(
        "bad-messages", .int, lifetime: .retained, group: .statistics, rank: .statistic,
        help: "Lines of the adapter that could not be parsed")
    }
  }
}
