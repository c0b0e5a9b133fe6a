// The delay before a link is opened again: 1 s, doubled after each failure up to 60 s. A link that was up for a while starts
// again at 1 s, so that earlier failures do not delay its next reconnect. An extra attempt is made when the link may be reachable again.

import Protocols

struct Backoff {
  static let first: Nanoseconds = .second
  private static let maxDelay: Nanoseconds = 60 * .second
  /// A link that was up this long starts again at the first delay.
  private static let stableAfter: Nanoseconds = 10 * .second
  /// A link that the protocol state machine reset, because no usable data arrived, must have been up this long instead.
  private static let stableAfterReset: Nanoseconds = 30 * .second

  private var connectedAt: Instant?
  private var delay: Nanoseconds = 0
  /// The time of the last extra attempt, which may be in the future.
  private var extraAttempt: Instant?

  /// Records that the link is up from now on.
  mutating func linkCameUp(at now: Instant) { connectedAt = now }

  /// Records that the link went down or failed to open. Returns the delay before the next attempt, without jitter.
  mutating func linkWentDown(at now: Instant, wasReset: Bool = false) -> Nanoseconds {
    if let connectedAt, now - connectedAt >= (wasReset ? Self.stableAfterReset : Self.stableAfter) { delay = 0 }
    connectedAt = nil
    delay = delay == 0 ? Self.first : min(delay * 2, Self.maxDelay)
    return delay
  }

  /// Records that the link may be reachable again. Returns the time of an extra attempt to open it: now, but not earlier than `interval`
  /// after the last one. If that attempt fails, the next delay is `first`.
  mutating func nextAttempt(at now: Instant, interval: Nanoseconds) -> Instant {
    delay = 0
    if let extraAttempt, extraAttempt > now { return extraAttempt }
    let moment = extraAttempt.map { max(now, $0 + interval) } ?? now
    extraAttempt = moment
    return moment
  }
}
