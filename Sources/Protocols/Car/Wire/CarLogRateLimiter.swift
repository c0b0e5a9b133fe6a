// A log rate limiter: passes ten messages per second, and counts the others.

struct CarLogRateLimiter: Sendable {
  private static let maxPerSecond = 10
  private var second: Instant = .min
  private var count = 0
  private var suppressed = 0

  /// Counts a message. Returns whether it passes, and how many were suppressed since the last one that passed.
  mutating func admit(at now: Instant) -> (isAllowed: Bool, suppressed: Int) {
    if second == .min || now &- second >= .second { (second, count) = (now, 0) }
    guard count < Self.maxPerSecond else {
      suppressed &+= 1
      return (false, suppressed)
    }
    count += 1
    defer { suppressed = 0 }
    return (true, suppressed)
  }
}
