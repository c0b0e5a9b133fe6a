// The order in which calls are answered. Timers and links come first: calls are answered at the end of a turn of the loop, for a
// bounded time, and the rest in later turns. Clients that are driving, which send setpoints under a motion lease, are served first and have
// a time slice of their own. All other clients share a second slice, equally by user, however many connections a user has.

import NIOCore
import Protocols

@Loop final class CallScheduler {
  /// Time for calls in one turn: once for driving clients, and once for all others together.
  private static let turnSlice: Nanoseconds = 500 * .microsecond
  /// Time for one user's calls before the next user's.
  private static let userSlice: Nanoseconds = 100 * .microsecond
  /// The pause before the next turn if calls are left. It limits calls to a third of a CPU, or to half of one while clients are driving.
  private static let pause: Nanoseconds = 1 * .millisecond

  private var drivers = CircularBuffer<Session>()
  /// Users with pending calls; the first one is served next.
  private var users = CircularBuffer<Account>()
  /// Whether `serve` is scheduled.
  private var isDue = false
  private lazy var timer = Timer { [weak self] _ in self?.serveAtEndOfTurn() }

  /// Whether no call is pending.
  var isEmpty: Bool { drivers.isEmpty && users.isEmpty }

  /// Queues a session with a pending call. `answerNext` is called once; the session queues itself again for its next call.
  func add(_ session: Session, of account: Account) {
    if session.isDriving {
      drivers.append(session)
    } else {
      account.pendingSessions.append(session)
      if !account.isQueued {
        account.isQueued = true
        users.append(account)
      }
    }
    if !isDue { serveAtEndOfTurn() }
  }

  /// Serves calls after everything else in this turn.
  private func serveAtEndOfTurn() {
    isDue = true
    Loop.post { [weak self] in self?.serve() }
  }

  private func serve() {
    var now = Clock.monotonic()
    let driversEnd = now + Self.turnSlice
    while now < driversEnd, let session = drivers.popFirst() {
      session.answerNext()
      now = Clock.monotonic()
    }
    let end = now + Self.turnSlice
    while now < end, let account = users.popFirst() {
      let sliceEnd = min(now + Self.userSlice, end)
      while now < sliceEnd, let session = account.pendingSessions.popFirst() {
        session.answerNext()
        now = Clock.monotonic()
      }
      account.isQueued = !account.pendingSessions.isEmpty
      if account.isQueued { users.append(account) }
    }
    isDue = !isEmpty
    if isDue { timer.set(now + Self.pause) }
  }
}
