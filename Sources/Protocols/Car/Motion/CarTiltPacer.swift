// The rate limit of tilts (the generic cell rate algorithm of ATM). A virtual clock advances by one interval per setpoint. Setpoints at
// the car's rate are sent immediately despite jitter, and the long-term rate is never exceeded. While no new setpoint arrives, the last
// one is repeated, so that the car's stream has no gaps. A second clock also counts repetitions, and limits only repetitions, so that a
// repetition never delays a new setpoint.

/// The rate of the setpoints.
struct CarTiltPacer: Sendable {
  /// The limits of the interval: 100 to 5 setpoints per second.
  private static let minInterval: Nanoseconds = 10 * .millisecond
  private static let maxInterval: Nanoseconds = 200 * .millisecond

  private(set) var interval: Nanoseconds = Self.maxInterval
  /// The virtual clock of setpoints: when the next one is expected at exactly the configured rate.
  private var setpointClock: Instant = .min
  /// The virtual clock of setpoints and repetitions.
  private var sendClock: Instant = .min
  /// When the last setpoint is repeated, not counting the rate limit; `.max` if it is not repeated.
  private var repetition: Instant = .max

  /// Limits an interval in seconds to the allowed range.
  static func interval(seconds: Double) -> Nanoseconds {
    let interval = (seconds * 1e9).rounded()
    return Nanoseconds(min(max(interval, Double(minInterval)), Double(maxInterval)))
  }

  /// The rate per second.
  var rate: Double { (1e12 / Double(interval)).rounded() / 1000 }

  /// When a new setpoint may be sent: at most one interval early. With less tolerance, a driver that sends at exactly the car's rate would
  /// be delayed at every setpoint after a single late one.
  var earliest: Instant { setpointClock == .min ? .min : setpointClock &- interval }

  /// When the last setpoint is repeated.
  var repetitionDue: Instant { sendClock == .min ? repetition : max(repetition, sendClock &- interval / 2) }

  mutating func set(interval: Nanoseconds) { self.interval = interval }

  /// Advances the clocks, because a new or repeated setpoint is being sent.
  mutating func tiltSent(isNew: Bool, at now: Instant) {
    if isNew { setpointClock = max(setpointClock, now) &+ interval }
    sendClock = max(sendClock, now) &+ interval
    repetition = now &+ (isNew ? interval &* 3 / 2 : interval)
  }

  /// Stops repeating the last setpoint.
  mutating func stopRepeating() { repetition = .max }
}
