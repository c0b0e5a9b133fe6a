// The rate limit of tilts: a virtual clock counts sent set-points (the generic cell rate algorithm of ATM). Set-points at the car's
// own rate are sent at once despite jitter, and the long-term rate is never exceeded. The last set-point is repeated while no new one
// arrives, so that the car's stream has no gaps. A second clock counts repetitions as well and limits only them, so that a repetition
// never delays a new set-point.

/// The rate of the set-points.
struct CarTiltPacer: Sendable {
  /// 5 to 100 per second.
  private static let shortest: Nanoseconds = 10 * .millisecond
  private static let longest: Nanoseconds = 200 * .millisecond

  private(set) var interval: Nanoseconds = Self.longest
  /// When the next set-point is expected at exactly this rate.
  private var arrival: Instant = .min
  /// The same for everything that is sent.
  private var total: Instant = .min
  private var repetition: Instant = .max

  /// The nearest allowed interval to a number of seconds.
  static func interval(seconds: Double) -> Nanoseconds {
    Int64((min(max(seconds, Double(shortest) / 1e9), Double(longest) / 1e9) * 1e9).rounded())
  }

  /// The rate per second.
  var rate: Double { (1e12 / Double(interval)).rounded() / 1000 }

  /// When a new set-point may be sent: at most one interval early. With less tolerance, a driver at exactly the car's rate would wait
  /// at every set-point after a single late one.
  var earliest: Instant { arrival == .min ? .min : arrival &- interval }

  /// When the last set-point is repeated.
  var repetitionDue: Instant { total == .min ? repetition : max(repetition, total &- interval / 2) }

  mutating func set(interval: Nanoseconds) { self.interval = interval }

  /// A set-point is sent.
  mutating func take(isNew: Bool, at now: Instant) {
    if isNew { arrival = max(arrival, now) &+ interval }
    total = max(total, now) &+ interval
    repetition = now &+ (isNew ? interval &* 3 / 2 : interval)
  }

  /// The lease has ended: the next set-point is the first one.
  mutating func rest() { repetition = .max }
}
