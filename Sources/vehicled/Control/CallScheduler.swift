// Whose call is answered next. Timers and links come first: calls are answered at the end of a turn of the loop, for a
// bounded time, and the rest waits for a later turn. Clients that drive have a time of their own, before all others; users
// share the other, however many connections each has.

import NIOCore
import Protocols

@Loop final class CallScheduler {
  /// How long calls are answered in one turn: of those who drive, and of all others together.
  private static let share: Nanoseconds = 500 * .microsecond
  /// How long one user's calls are answered before the next user's.
  private static let slice: Nanoseconds = 100 * .microsecond

  /// How long the loop has for everything else when that was not enough: clients that call without end get a third of a processor.
  private static let pause: Nanoseconds = 1 * .millisecond

  private var drivers = CircularBuffer<Session>()
  /// Those whose clients wait, the next first.
  private var users = CircularBuffer<Account>()
  /// There is something to do, and it will be done.
  private var isDue = false
  private lazy var timer = Timer { [weak self] _ in self?.serveAtEndOfTurn() }

  /// Nobody waits.
  var isEmpty: Bool { drivers.isEmpty && users.isEmpty }

  /// The session has a call to answer. It is told to answer one, and adds itself again for the next.
  func add(_ session: Session, of account: Account) {
    if session.isDriving {
      drivers.append(session)
    } else {
      account.waiting.append(session)
      if !account.isQueued {
        account.isQueued = true
        users.append(account)
      }
    }
    if !isDue { serveAtEndOfTurn() }
  }

  /// Behind everything else that happens in this turn.
  private func serveAtEndOfTurn() {
    isDue = true
    Loop.post { [weak self] in self?.serve() }
  }

  private func serve() {
    var now = Clock.monotonic()
    let driversEnd = now + Self.share
    while now < driversEnd, let session = drivers.popFirst() {
      session.answerNext()
      now = Clock.monotonic()
    }
    let end = now + Self.share
    while now < end, let account = users.popFirst() {
      let sliceEnd = min(now + Self.slice, end)
      while now < sliceEnd, let session = account.waiting.popFirst() {
        session.answerNext()
        now = Clock.monotonic()
      }
      account.isQueued = !account.waiting.isEmpty
      if account.isQueued { users.append(account) }
    }
    isDue = !isEmpty
    if isDue { timer.set(now + Self.pause) }
  }
}
