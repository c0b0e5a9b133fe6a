// The limits that keep one user from exhausting a server: connections, and lines in the journal. Pure values.

import Protocols

/// Counts connections. A user can have at most as many connections as remain free for others.
struct ConnectionCounts {
  /// The maximum number of connections, and how many of them are reserved for root and the user of the service.
  let limit: Int
  let reserved: Int
  private var total = 0
  private var users: [UInt32: Int] = [:]

  init(limit: Int, reserved: Int) { (self.limit, self.reserved) = (limit, reserved) }

  /// Counts a connection of the user and returns true, or returns false if a limit is reached.
  mutating func admit(user: UInt32, isOwner: Bool) -> Bool {
    let free = limit - total
    guard isOwner ? free > 0 : users[user, default: 0] < free - reserved else { return false }
    total += 1
    users[user, default: 0] += 1
    return true
  }

  mutating func leave(user: UInt32) {
    total -= 1
    users[user] = users[user].flatMap { $0 > 1 ? $0 - 1 : nil }
  }
}

/// Limits messages about clients to 20 per minute.
struct LogLimit {
  enum Decision { case log, logLast, suppress }

  private static let max = 20
  private var count = 0
  private var since: Instant = 0

  mutating func next(at now: Instant) -> Decision {
    if now - since > 60 * .second { (count, since) = (0, now) }
    count += 1
    return count < Self.max ? .log : count == Self.max ? .logLast : .suppress
  }
}
