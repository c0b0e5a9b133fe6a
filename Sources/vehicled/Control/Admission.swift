// Limits on connections. No user gets more connections than remain free for others. Guests are clients that are not known to have any
// right. They share part of the connections, their connection rate is limited, and they are rejected with a probability that grows with the
// number of their user's connections, as with sshd's MaxStartups.

import Glibc
import Logging
import NIOCore
import Protocols
import ServiceRuntime

/// The connections and input of one user.
@Loop final class Account {
  /// nil if the kernel reports no credentials.
  let user: UInt32?
  /// Root, or the daemon's own user.
  let isOwner: Bool
  /// The number of the user's connections.
  fileprivate(set) var sessionCount = 0
  /// The number of the user's connections that are guests.
  fileprivate(set) var guestCount = 0
  /// Sessions with a pending call. Only the scheduler uses them.
  var pendingSessions = CircularBuffer<Session>()
  /// Whether the account is in the queue of the scheduler. Only the scheduler uses it.
  var isQueued = false

  /// The limit of unanswered input of each connection in bytes. Input that exceeds it counts against `sharedLimit`.
  static let ownLimit = 16 << 10
  /// The limit of unanswered input in bytes that all connections of the user share.
  private static let sharedLimit = 2 << 20
  /// The bytes that count against the shared limit.
  private var sharedInput = 0
  /// Connections that resume reading once there is room.
  private var waitingForRoom: [ObjectIdentifier: Session] = [:]

  fileprivate init(user: UInt32?) {
    self.user = user
    isOwner = user == 0 || user == geteuid()
  }

  /// Whether the shared limit leaves room for more input.
  var hasRoom: Bool { sharedInput < Self.sharedLimit }

  /// Notifies the session once there is room.
  func notifyWhenRoom(_ session: Session) { waitingForRoom[ObjectIdentifier(session)] = session }

  /// Adds to (or subtracts from) the bytes that count against the shared limit.
  func addShared(_ change: Int) {
    sharedInput += change
    guard change < 0, hasRoom, !waitingForRoom.isEmpty else { return }
    let sessions = waitingForRoom.values
    waitingForRoom = [:]
    sessions.forEach { $0.advance() }
  }
}

@Loop final class Admission {
  /// The maximum number of connections. It leaves descriptors for the links.
  private static let maxSessions = 256
  /// The number of connections that are reserved for root and the daemon's user.
  private static let reserved = 16
  /// The maximum number of connections of all guests together.
  static let maxGuests = 96
  /// Random early rejection of guests, by the number of guest connections of the same user: the number at which it starts, the probability
  /// at that number, and the number at which it is certain.
  private static let earlyRejection = (start: 16, rate: 0.3, full: 64)
  /// With fewer free connections than this, the connections of clients that make no call within `maxIdleTime` are closed.
  private static let minFreeConnections = 64
  private let maxIdleTime: Nanoseconds
  /// How long a client may leave its replies unread before its connection is closed.
  let maxUnreadTime: Nanoseconds

  private(set) var sessions: [ObjectIdentifier: Session] = [:]
  /// The number of clients that were rejected because of a limit.
  private(set) var rejected = 0
  private var accounts: [UInt32?: Account] = [:]
  private var guestCount = 0
  private var guestRate = ConnectionRate()
  private var idleClosedAt: Instant = 0
  /// The users for whom a call was allowed under the current access rules.
  private(set) var grantedUsers: Set<UInt32> = []
  private var logLimit = LogLimit()
  private let log = Logger(label: "vehicled")

  init(maxIdleTime: Nanoseconds = 10 * .second, maxUnreadTime: Nanoseconds = 60 * .second) {
    (self.maxIdleTime, self.maxUnreadTime) = (maxIdleTime, maxUnreadTime)
  }

  /// Whether a user has exceeded the guest connection rate. The check is cheap, so that a client that connects in a loop costs little.
  func isRateLimited(_ user: UInt32) -> Bool {
    guard guestRate.isRateLimited(user, at: Clock.monotonic()) else { return false }
    rejected += 1
    return true
  }

  /// Whether a guest may connect now.
  func admitGuest(_ user: UInt32?) -> Bool {
    if guestRate.admit(user: user ?? .max, at: Clock.monotonic()) { return true }
    rejected += 1
    return false
  }

  /// Admits a client and returns its user's account, or nil if a limit is reached. The caller must report the end of each admitted client
  /// to `recordEnd`. `holdsLease` returns whether a user holds a motion lease.
  func admit(_ session: Session, holdsLease: @Loop (UInt32) -> Bool) -> Account? {
    let account = accounts[session.peer?.user] ?? Account(user: session.peer?.user)
    if !account.isOwner { closeIdle(account, unless: holdsLease) }
    guard hasCapacity(for: account, isGuest: session.isGuest) else {
      rejected += 1
      return nil
    }
    accounts[account.user] = account
    account.sessionCount += 1
    if session.isGuest { countGuest(account, 1) }
    sessions[ObjectIdentifier(session)] = session
    if sessions.count == Self.maxSessions {
      log.warning("connection limit reached (\(sessions.count) clients): rejecting new clients until one disconnects")
    }
    return account
  }

  /// Records that an admitted client has disconnected.
  func recordEnd(of session: Session, _ account: Account) {
    guard sessions.removeValue(forKey: ObjectIdentifier(session)) != nil else { return }
    account.sessionCount -= 1
    if session.isGuest { countGuest(account, -1) }
    if account.sessionCount == 0 { accounts[account.user] = nil }
  }

  /// Records that a call was granted. If the client was a guest, it no longer is.
  func recordGrant(_ account: Account, wasGuest: Bool) {
    if let user = account.user { grantedUsers.insert(user) }
    if wasGuest { countGuest(account, -1) }
  }

  /// Forgets which users were granted a call, because the access rules have changed.
  func forgetGrants() { grantedUsers = [] }

  private func countGuest(_ account: Account, _ change: Int) {
    account.guestCount += change
    guestCount += change
  }

  /// Logs a client's protocol violation, rate limited.
  func logViolation(_ message: String, by peer: Peer?) {
    guard let message = logLimit.admit(message, at: Clock.monotonic()) else { return }
    log.notice("\(message)", metadata: ["pid": "\(peer?.pid ?? 0)"])
  }

  private func hasCapacity(for account: Account, isGuest: Bool) -> Bool {
    if account.isOwner { return sessions.count < Self.maxSessions }
    guard account.sessionCount < freeConnections else { return false }
    guard isGuest else { return true }
    guard account.guestCount < Self.maxGuests - guestCount else { return false }
    let (start, rate, full) = Self.earlyRejection
    guard account.guestCount >= start else { return true }
    return Double.random(in: 0..<1) >= rate + (1 - rate) * Double(account.guestCount - start) / Double(full - start)
  }

  private var freeConnections: Int { Self.maxSessions - Self.reserved - sessions.count }

  /// Closes idle connections when connections are scarce, overall or for this user. Runs at most ten times a second. The holder of a motion
  /// lease keeps an idle connection, which it needs for Stop.
  private func closeIdle(_ account: Account, unless holdsLease: @Loop (UInt32) -> Bool) {
    let (isScarce, areGuestSlotsScarce) = (freeConnections < Self.minFreeConnections, guestCount >= Self.maxGuests / 2)
    guard isScarce || areGuestSlotsScarce || account.guestCount >= Self.earlyRejection.start || account.sessionCount >= freeConnections
    else {
      return
    }
    let now = Clock.monotonic()
    guard now - idleClosedAt >= 100 * .millisecond else { return }
    idleClosedAt = now
    let before = now - maxIdleTime
    for session in sessions.values where session.isIdle(since: before) {
      let user = session.peer?.user
      if isScarce || areGuestSlotsScarce && session.isGuest || user == account.user, !(user.map(holdsLease) ?? false) { session.close() }
    }
  }
}

extension Methods {
  /// The session of a client that has connected, or nil if a limit is reached.
  func session(for peer: Peer?) -> Session? {
    let isGuest = !isKnown(peer)
    return isGuest && !admission.admitGuest(peer?.user) ? nil : Session(self, peer: peer, isGuest: isGuest)
  }

  /// Admits a client and returns its user's account, or nil if a limit is reached.
  func admit(_ session: Session) -> Account? {
    admission.admit(session) { user in hub.states.contains { $0.device.lease?.user == user } }
  }

  /// Stops reading from all clients and waits until the calls already sent are answered, at most this long.
  func finish(within time: Nanoseconds) async {
    admission.sessions.values.forEach { $0.stopInput() }
    let end = Clock.monotonic() + time
    while !(scheduler.isEmpty && admission.sessions.values.allSatisfy(\.isAnswered)), Clock.monotonic() < end {
      await Timer.pause(.millisecond)
    }
  }
}
