// How long a link waits before it is tried again: a second, then twice as long each time, to a minute. A link that held for a while
// starts over, so that an hour of bad radio does not cost whoever comes back a minute. Pure: instants in, waits out.

import Protocols

struct Backoff {
  static let first: Nanoseconds = .second
  private static let longest: Nanoseconds = 60 * .second
  /// A link that held this long starts over.
  private static let steady: Nanoseconds = 10 * .second
  /// One that its machine gave up: it opens, and nothing useful comes over it.
  private static let useful: Nanoseconds = 30 * .second

  private var cameUp: Instant?
  private var wait: Nanoseconds = 0

  /// The link is up; how long it holds counts from now.
  mutating func linkCameUp(at now: Instant) { cameUp = now }

  /// The link went down, or has not come up. Gives how long to wait, before jitter.
  mutating func linkWentDown(at now: Instant, isGivenUp: Bool = false) -> Nanoseconds {
    if let cameUp, now - cameUp >= (isGivenUp ? Self.useful : Self.steady) { wait = 0 }
    cameUp = nil
    wait = wait == 0 ? Self.first : min(wait * 2, Self.longest)
    return wait
  }
}
