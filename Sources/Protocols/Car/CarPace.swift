// When the next tilt may go out. A virtual clock counts the set-points that have gone (the generic cell rate algorithm of
// ATM): a driver at the car's own rate is let through at once, jitter and all, and nobody is faster than that rate in the
// long run. What was said last is said again while nothing new comes, so that the car's stream never has a hole; a second
// clock counts those as well, and holds back them alone: a repetition never stands in the way of what is new.

/// The rate of the set-points.
struct CarPace: Sendable {
  /// 5 to 100 a second.
  private static let shortest: Nanoseconds = 10 * .millisecond
  private static let longest: Nanoseconds = 200 * .millisecond

  var interval: Nanoseconds = Self.longest
  /// When the next one would come from a driver who is neither early nor late.
  private var arrival: Instant = .min
  /// The same of all that goes out.
  private var total: Instant = .min
  private var repetition: Instant = .max

  /// Seconds as the nearest interval that is allowed.
  static func interval(seconds: Double) -> Nanoseconds {
    Int64((min(max(seconds, Double(shortest) / 1e9), Double(longest) / 1e9) * 1e9).rounded())
  }

  /// In a second.
  var rate: Double { (1e12 / Double(interval)).rounded() / 1000 }

  /// When a new set-point may go out: an interval early at the most. With less than that a driver at the very rate of the car
  /// whose first set-point had to wait would wait with every one that follows, for as long as he drives.
  var earliest: Instant { arrival == .min ? .min : arrival &- interval }

  /// When the last one is to be said again.
  var repetitionDue: Instant { total == .min ? repetition : max(repetition, total &- interval / 2) }

  /// One goes out.
  mutating func take(isNew: Bool, at now: Instant) {
    if isNew { arrival = max(arrival, now) &+ interval }
    total = max(total, now) &+ interval
    repetition = now &+ (isNew ? interval &* 3 / 2 : interval)
  }

  /// Nobody drives: the next one is the first.
  mutating func rest() { repetition = .max }
}
