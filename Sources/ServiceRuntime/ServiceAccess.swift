// The access check of a service: root and the service's own user have all rights; other users have those that the lists grant. Names
// are looked up on a separate thread, because the name service can hang.

import Protocols

public final class ServiceAccess: EventSource {
  /// The lifetime of an answer: an ID can be reassigned at any time.
  static let maxAge: Nanoseconds = .second
  /// The maximum time that a check waits for a lookup.
  static let timeout: Nanoseconds = 5 * .second

  private let observers: AccessList
  private let controllers: AccessList
  private let section: String
  private let timeout: Nanoseconds
  private let maxAge: Nanoseconds
  private let thread: BackgroundThread
  private let resolve: @Sendable (Accounts.Query) -> Accounts.Answer
  private var answers: [Accounts.Query: (answer: Accounts.Answer, at: Instant)] = [:]
  /// The checks that wait for a lookup, by number.
  private var waiting: [Int: (deadline: Instant, decide: (String?) -> Void)] = [:]
  private var nextNumber = 0

  /// Controllers have both rights. `section` is the section of the configuration that contains the lists, for messages.
  public convenience init(observe observers: AccessList, control controllers: AccessList, section: String, loop: EventLoop) {
    self.init(observers, controllers, section: section, timeout: Self.timeout, loop: loop, resolve: Accounts.resolve)
  }

  init(
    _ observers: AccessList, _ controllers: AccessList, section: String, timeout: Nanoseconds, maxAge: Nanoseconds = ServiceAccess.maxAge,
    loop: EventLoop, resolve: @escaping @Sendable (Accounts.Query) -> Accounts.Answer
  ) {
    (self.observers, self.controllers, self.section) = (observers, controllers, section)
    (self.timeout, self.maxAge, self.resolve) = (timeout, maxAge, resolve)
    thread = BackgroundThread(name: "names", loop: loop)
    super.init()
    loop.add(self)
  }

  /// Decides whether the peer has the right: at once if the names are known, otherwise after a lookup. `decide` receives nil, or a
  /// message that says which right the peer lacks, and how to get it.
  public func check(_ right: Right, for peer: Peer, decide: @escaping (_ denial: String?) -> Void) {
    if peer.isOwner { return decide(nil) }
    let now = SystemClock.monotonic
    answers = answers.filter { now - $0.value.at <= maxAge }
    let queries = observers.queries + controllers.queries + [.userName(peer.user)]
    let missing = queries.filter { answers[$0] == nil }
    let known = answers.mapValues(\.answer)
    if missing.isEmpty { return decide(denial(of: right, for: peer, known)) }
    nextNumber += 1
    let number = nextNumber
    waiting[number] = (now + timeout, decide)
    updateTimer()
    thread.run { [resolve] in
      missing.map { (query: $0, answer: resolve($0)) }
    } then: { [weak self] found in
      self?.received(found, number, right, peer, known)
    }
  }

  private func received(
    _ found: [(query: Accounts.Query, answer: Accounts.Answer)], _ number: Int, _ right: Right, _ peer: Peer, _ known: Accounts.Answers
  ) {
    let now = SystemClock.monotonic
    // An answer that has expired since is still used: it was valid when the check began.
    var known = known
    for (query, answer) in found {
      answers[query] = (answer, now)
      known[query] = answer
    }
    guard let check = waiting.removeValue(forKey: number) else { return }
    updateTimer()
    check.decide(denial(of: right, for: peer, known))
  }

  public override func timerFired(at now: Instant) {
    for (number, check) in waiting where check.deadline <= now {
      waiting[number] = nil
      check.decide("the name service does not respond; try again, or check with getent(1)")
    }
    updateTimer()
  }

  private func updateTimer() { wake = waiting.values.map(\.deadline).min() }

  private func denial(of right: Right, for peer: Peer, _ answers: Accounts.Answers) -> String? {
    let lists = right == .observe ? [observers, controllers] : [controllers]
    if lists.contains(where: { $0.matches(peer, answers) }) { return nil }
    return AccessList.denial(of: right, for: peer, lists: lists, key: "\(right)-users", section: section, answers)
  }
}
