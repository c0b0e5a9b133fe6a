// The repeating ride of the simulated longboard, a pure function of the time since the start.
// Source: ProjectTORQ.ino, which integrates the speed in whole mph, so speeds below 1 mph do not count; a 10S pack of 36 to 42 V.

/// The ride.
struct BoardRide: Sendable {
  /// The duration in s and the final speed in mph of each leg.
  private static let legs: [(seconds: Double, speed: Double)] = [
    (2, 0), (8, 16), (20, 18), (4, 10), (12, 18), (6, 0), (3, 0), (2, -2), (2, -2), (1, 0),
  ]
  static let period = legs.reduce(0) { $0 + $1.seconds }
  private static let stepsPerSecond = 10.0
  private static let fullVoltage = 41.4
  private static let emptyVoltage = 33.4

  /// The distance in miles since the start of a cycle, one element per 0.1 s.
  private var miles: [Double] = [0]

  init() {
    for step in 0..<Int(BoardRide.period * BoardRide.stepsPerSecond) {
      let speed = BoardRide.speed((Double(step) + 0.5) / BoardRide.stepsPerSecond).rounded(.towardZero)
      miles.append((miles.last ?? 0) + speed / 3600 / BoardRide.stepsPerSecond)
    }
  }

  /// The speed in mph; negative is backwards.
  static func speed(_ seconds: Double) -> Double {
    var rest = max(0, seconds).truncatingRemainder(dividingBy: period)
    var from = 0.0
    for leg in legs {
      if rest < leg.seconds { return from + (leg.speed - from) * rest / leg.seconds }
      rest -= leg.seconds
      from = leg.speed
    }
    return 0
  }

  /// The distance in miles since the start, as the board counts it.
  func distance(_ seconds: Double) -> Double {
    let seconds = max(0, seconds)
    let cycles = (seconds / BoardRide.period).rounded(.down)
    let step = Int((seconds - cycles * BoardRide.period) * BoardRide.stepsPerSecond)
    return cycles * (miles.last ?? 0) + miles[min(max(0, step), miles.count - 1)]
  }

  /// The pack voltage in V. It falls over two hours, and drops slightly under load.
  static func voltage(_ seconds: Double) -> Double {
    let part = min(max(0, seconds) / 7200, 1)
    return fullVoltage + (emptyVoltage - fullVoltage) * part - abs(speed(seconds)) * 0.02
  }
}
