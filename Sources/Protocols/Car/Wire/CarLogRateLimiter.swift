// A log rate limiter: lets ten messages per second pass, and counts the others.

struct CarLogRateLimiter: Sendable {
  private static let maxPerSecond = 10
  private var second: Instant = .min
  private var count = 0
  private var missed = 0

  /// Whether a message passes, and how many were suppressed since the last one that passed.
  mutating func take(at now: Instant) -> (isAllowed: Bool, missed: Int) {
    if second == .min || now &- second >= .second { (second, count) = (now, 0) }
    guard count < Self.maxPerSecond else {
      missed &+= 1
      return (false, missed)
    }
    count += 1
    defer { missed = 0 }
    return (true, missed)
  }
}
