// Who is connected, and who is let in. Places go by user: nobody takes more of them than are left for the others, and
// connections without a right are let in ever more seldom the more of them their user has, as sshd's MaxStartups does it.

import Glibc
import Logging
import NIOCore
import Protocols

/// What one user takes of the socket.
@Loop final class Account {
  /// nil where the kernel does not say.
  let user: UInt32?
  /// Root, or the daemon's own user.
  let isOwner: Bool
  /// Its connections, and those among them none of whose calls was granted.
  fileprivate(set) var sessions = 0
  fileprivate(set) var strangers = 0
  /// Whose calls wait; the scheduler's, and whether this is in its list.
  var waiting = CircularBuffer<Session>()
  var isQueued = false

  /// How many bytes of calls that are not answered a connection may have of its own, and how many its user's share beyond.
  static let own = 16 << 10
  private static let shared = 2 << 20
  private var input = 0
  /// Connections that read on when there is room again.
  private var parked: [ObjectIdentifier: Session] = [:]

  fileprivate init(user: UInt32?) {
    self.user = user
    isOwner = user == 0 || user == geteuid()
  }

  /// There is room for input beyond what each connection has of its own.
  var hasRoom: Bool { input < Self.shared }

  /// The session wants to be told when there is.
  func park(_ session: Session) { parked[ObjectIdentifier(session)] = session }

  /// So many bytes more are held beyond the connection's own, or fewer.
  func holds(_ more: Int) {
    input += more
    guard more < 0, hasRoom, !parked.isEmpty else { return }
    let waiting = parked.values
    parked = [:]
    waiting.forEach { $0.settle() }
  }
}

@Loop final class Admission {
  /// How many clients may be connected; a descriptor must be left for every link. So many are kept for root and the daemon's own.
  private static let maxSessions = 256
  private static let kept = 16
  /// How many connections without a right a user has before one more is refused at random, how likely that is then, and how many when
  /// it is certain.
  private static let early = (start: 16, rate: 0.3, full: 64)
  /// Where fewer places are left than this, a client has so long to make its first call.
  private static let few = 64
  private let maxSilence: Nanoseconds

  private(set) var sessions: [ObjectIdentifier: Session] = [:]
  /// Whom there was no room for.
  private(set) var rejected = 0
  private var accounts: [UInt32?: Account] = [:]
  /// How often a minute misbehaving clients are complained of.
  private static let maxComplaints = 20
  private var complaints = 0
  private var complaintsSince: Instant = 0
  private let log = Logger(label: "vehicled")

  init(maxSilence: Nanoseconds = 10 * .second) {
    self.maxSilence = maxSilence
  }

  /// One more client, which is given its user's account; nil: there is no place for it. Each that is served ends with `ended`.
  /// `isKnown` says whether it has a right, and `drives` whether a user holds a motion lease.
  func begins(_ session: Session, isKnown: @Loop () -> Bool, drives: @Loop (UInt32) -> Bool) -> Account? {
    let account = accounts[session.peer?.user] ?? Account(user: session.peer?.user)
    if !account.isOwner { closeSilent(account, unless: drives) }
    guard hasPlace(for: account, isKnown: isKnown) else {
      rejected += 1
      return nil
    }
    accounts[account.user] = account
    account.sessions += 1
    if !session.isTrusted { account.strangers += 1 }
    sessions[ObjectIdentifier(session)] = session
    if sessions.count == Self.maxSessions { log.warning("\(sessions.count) clients are connected: no more are let in until one leaves") }
    return account
  }

  func ended(_ session: Session, of account: Account) {
    guard sessions.removeValue(forKey: ObjectIdentifier(session)) != nil else { return }
    account.sessions -= 1
    if !session.isTrusted { account.strangers -= 1 }
    if account.sessions == 0 { accounts[account.user] = nil }
  }

  /// A call of the client was granted for the first time.
  func trusts(_ account: Account) { account.strangers -= 1 }

  /// Complains of a client, but not so often that clients could fill the journal.
  func complain(_ words: String, of peer: Peer?) {
    let now = Clock.monotonic()
    if now - complaintsSince > 60 * .second { (complaints, complaintsSince) = (0, now) }
    complaints += 1
    guard complaints <= Self.maxComplaints else { return }
    let more = complaints == Self.maxComplaints ? "; more such in this minute are not told" : ""
    log.notice("\(words)\(more)", metadata: ["pid": "\(peer?.pid ?? 0)"])
  }

  private func hasPlace(for account: Account, isKnown: @Loop () -> Bool) -> Bool {
    if account.isOwner { return sessions.count < Self.maxSessions }
    guard account.sessions < left else { return false }
    let (start, rate, full) = Self.early
    guard account.strangers >= start, !isKnown() else { return true }
    let chance = rate + (1 - rate) * Double(account.strangers - start) / Double(full - start)
    return Double.random(in: 0..<1) >= chance
  }

  private var left: Int { Self.maxSessions - Self.kept - sessions.count }

  /// Where places are scarce, for all or for this user, those make room who have connected and say nothing. Who drives keeps a
  /// silent connection for Stop.
  private func closeSilent(_ account: Account, unless drives: @Loop (UInt32) -> Bool) {
    let isScarce = left < Self.few
    guard isScarce || account.strangers >= Self.early.start || account.sessions >= left else { return }
    let before = Clock.monotonic() - maxSilence
    for session in sessions.values where session.isSilent(since: before) {
      let user = session.peer?.user
      if isScarce || user == account.user, !(user.map(drives) ?? false) { session.close() }
    }
  }
}

extension Methods {
  /// One more client, with its user's account; nil: there is no place for it.
  func begins(_ session: Session) -> Account? {
    admission.begins(session, isKnown: { hasRight(session) }) { user in
      board.states.contains { $0.device.lease?.user == user }
    }
  }

  /// Has every client that has called answered, as far as that is done within this time. Nobody is heard any more.
  func finish(within time: Nanoseconds) async {
    admission.sessions.values.forEach { $0.finish() }
    let end = Clock.monotonic() + time
    while !(scheduler.isEmpty && admission.sessions.values.allSatisfy(\.isAnswered)), Clock.monotonic() < end {
      await Timer.pause(.millisecond)
    }
  }
}
