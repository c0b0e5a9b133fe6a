// The limits that keep one user from exhausting a server: connections, and lines in the journal. Value types that read no clock.

import Protocols

/// Counts connections. A user can have at most as many connections as remain free for others. Guests, the users who are not known to have a
/// right, share a part of the connections, so that they cannot lock out users who have one.
struct ConnectionCounts {
  /// The maximum number of connections.
  let limit: Int
  /// The number of connections that are reserved for root and the user of the service.
  let reserved: Int
  /// The maximum number of connections of all guests together.
  let guests: Int
  private var total = 0
  private var guestTotal = 0
  private var users: [UInt32: Int] = [:]

  init(limit: Int, reserved: Int, guests: Int) { (self.limit, self.reserved, self.guests) = (limit, reserved, guests) }

  /// Counts a connection of the user and returns true, or returns false if a limit is reached. A guest is not known to have a right.
  mutating func admit(user: UInt32, isOwner: Bool, isGuest: Bool) -> Bool {
    let free = limit - total
    let available = isGuest ? min(free - reserved, guests - guestTotal) : free - reserved
    guard isOwner ? free > 0 : users[user, default: 0] < available else { return false }
    total += 1
    guestTotal += isGuest ? 1 : 0
    users[user, default: 0] += 1
    return true
  }

  mutating func leave(user: UInt32, isGuest: Bool) {
    total -= 1
    guestTotal -= isGuest ? 1 : 0
    users[user] = users[user].flatMap { $0 > 1 ? $0 - 1 : nil }
  }
}

/// Limits the connection rate of each guest, and of all guests together. Guests are users who are not known to have a right. A connection
/// above the limit can be closed before any other work is done for it.
public struct ConnectionRate: Sendable {
  /// A supply of tokens. Each connection takes one; tokens are refilled over time.
  private struct Bucket {
    /// The maximum number of tokens, which is also the number refilled per second.
    let capacity: Double
    var tokens: Double
    var at: Instant

    init(_ capacity: Double, at now: Instant) { (self.capacity, tokens, at) = (capacity, capacity, now) }

    mutating func refill(at now: Instant) {
      tokens = min(capacity, tokens + capacity * Double(now - at) / Double(Nanoseconds.second))
      at = now
    }
  }

  /// The maximum number of connections per second of one guest.
  static let perUser = 64.0
  /// The maximum number of connections per second of all guests together.
  static let total = 256.0
  private static let maxUsers = 1024

  private var all = Bucket(Self.total, at: 0)
  private var users: [UInt32: Bucket] = [:]

  public init() {}

  /// Whether this user has recently connected too often as a guest. Cheaper than determining the rights of a client.
  public mutating func isRateLimited(_ user: UInt32, at now: Instant) -> Bool {
    guard users[user] != nil else { return false }
    users[user]?.refill(at: now)
    return users[user].map { $0.tokens < 1 } ?? false
  }

  /// Whether this user may connect now as a guest.
  public mutating func admit(user: UInt32, at now: Instant) -> Bool {
    all.refill(at: now)
    var bucket = users[user] ?? Bucket(Self.perUser, at: now)
    bucket.refill(at: now)
    guard bucket.tokens >= 1, all.tokens >= 1 else { return false }
    bucket.tokens -= 1
    all.tokens -= 1
    users[user] = bucket
    // A bucket that has not been used for a second is full, like a new one.
    if users.count > Self.maxUsers { users = users.filter { now - $0.value.at < .second } }
    return true
  }
}

/// Limits messages about clients to 20 per minute, so that clients cannot fill the journal.
public struct LogLimit: Sendable {
  private static let max = 20
  private var count = 0
  private var since: Instant = 0

  public init() {}

  /// Returns the message to log, or nil if it is suppressed.
  public mutating func admit(_ message: String, at now: Instant) -> String? {
    if now - since > 60 * .second { (count, since) = (0, now) }
    count += 1
    guard count <= Self.max else { return nil }
    return message + (count == Self.max ? "; further messages are suppressed for a minute" : "")
  }
}
