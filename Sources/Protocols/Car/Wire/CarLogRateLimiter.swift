// A rate limiter: ten per second pass, and the others are counted.

struct CarLogRateLimiter: Sendable {
  private static let most = 10
  private var second: Instant = .min
  private var count = 0
  private var missed = 0

  /// Whether this one passes, and how many were suppressed since the last one that passed.
  mutating func take(at now: Instant) -> (isAllowed: Bool, missed: Int) {
    if second == .min || now &- second >= .second { (second, count) = (now, 0) }
    guard count < Self.most else {
      missed &+= 1
      return (false, missed)
    }
    count += 1
    defer { missed = 0 }
    return (true, missed)
  }
}
