// A token bucket: how often something may happen. No clock; the caller passes the time.

import Protocols

struct RateLimit {
  private let burst: Double
  /// Per nanosecond.
  private let rate: Double
  private var available: Double
  private var updated: Instant

  /// Allows `burst` events at once, and `perSecond` in the long run.
  init(burst: Int, perSecond: Double, at now: Instant) {
    (self.burst, rate, available, updated) = (Double(burst), perSecond / 1e9, Double(burst), now)
  }

  /// Counts an event. Returns nil if it may happen now, or else the time to wait before asking again.
  mutating func take(at now: Instant) -> Nanoseconds? {
    available = min(burst, available + Double(max(0, now - updated)) * rate)
    updated = now
    guard available < 1 else {
      available -= 1
      return nil
    }
    return Int64((1 - available) / rate) + 1
  }
}
