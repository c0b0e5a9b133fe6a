// The access check of a service: root and the service's own user have all rights; other users have the rights that the lists grant. Names
// are looked up on two separate threads, because the name service can hang: one for the names in the lists, and one for the names of users
// without a right, which are needed only for messages. Many users without a right therefore do not delay the others.

import Protocols

public final class ServiceAccess: EventSource {
  /// The lifetime of an answer: an ID can be reassigned at any time.
  static let maxAge: Nanoseconds = .second
  /// The maximum time that a check waits for a lookup.
  static let timeout: Nanoseconds = 5 * .second
  /// The maximum number of users without a right whose names are looked up at the same time. Messages to further users contain their IDs.
  static let maxPendingNames = 16

  private struct Check {
    let right: Right
    let peer: Peer
    let deadline: Instant
    let decide: (String?) -> Void
  }

  private let observers: AccessList
  private let controllers: AccessList
  private let section: String
  private let timeout: Nanoseconds
  private let maxAge: Nanoseconds
  private let listThread: BackgroundThread
  private let nameThread: BackgroundThread
  private let resolve: @Sendable (Accounts.Query) -> Accounts.Answer
  /// The answers for the names in the lists, and when they were received.
  private var listAnswers: (answers: Accounts.Answers, at: Instant)?
  private var isLookingUp = false
  private var names: [UInt32: (answer: Accounts.Answer, at: Instant)] = [:]
  private var pendingNames: Set<UInt32> = []
  /// The checks that wait for the names in the lists.
  private var waiting: [Check] = []
  /// The checks that are denied, but wait for the name of the user.
  private var denied: [(check: Check, answers: Accounts.Answers)] = []

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
    listThread = BackgroundThread(name: "names", loop: loop)
    nameThread = BackgroundThread(name: "guest names", loop: loop)
    super.init()
    loop.add(self)
  }

  /// Decides whether the peer has the right: at once if the names are known, otherwise after a lookup. `decide` receives nil, or a
  /// message that says which right the peer lacks, and how to get it.
  public func check(_ right: Right, for peer: Peer, decide: @escaping (_ denial: String?) -> Void) {
    if peer.isOwner { return decide(nil) }
    let now = SystemClock.monotonic
    let check = Check(right: right, peer: peer, deadline: now + timeout, decide: decide)
    if let listAnswers, now - listAnswers.at <= maxAge { return finish(check, listAnswers.answers) }
    waiting.append(check)
    lookUpLists()
    updateTimer()
  }

  /// Whether the peer has a right according to the latest answers, however old. Never waits.
  public func isKnown(_ peer: Peer) -> Bool {
    if listAnswers == nil { lookUpLists() }
    return peer.isOwner || has(.observe, peer, listAnswers?.answers ?? [:])
  }

  private func lookUpLists() {
    guard !isLookingUp else { return }
    isLookingUp = true
    listThread.run { [resolve, queries = Set(observers.queries + controllers.queries)] in
      Accounts.Answers(uniqueKeysWithValues: queries.map { ($0, resolve($0)) })
    } then: { [weak self] answers in
      guard let self else { return }
      isLookingUp = false
      listAnswers = (answers, SystemClock.monotonic)
      let checks = waiting
      waiting = []
      for check in checks { finish(check, answers) }
      updateTimer()
    }
  }

  /// Decides a check with these answers for the names in the lists. The message of a denial waits for the name of the user.
  private func finish(_ check: Check, _ answers: Accounts.Answers) {
    if has(check.right, check.peer, answers) { return check.decide(nil) }
    let (user, now) = (check.peer.user, SystemClock.monotonic)
    names = names.filter { now - $0.value.at <= maxAge }
    if let name = names[user] { return deny(check, answers, name.answer) }
    guard pendingNames.contains(user) || pendingNames.count < Self.maxPendingNames else { return deny(check, answers, .absent) }
    denied.append((check, answers))
    updateTimer()
    guard pendingNames.insert(user).inserted else { return }
    nameThread.run { [resolve] in
      resolve(.userName(user))
    } then: { [weak self] name in
      guard let self else { return }
      pendingNames.remove(user)
      names[user] = (name, SystemClock.monotonic)
      end { $0.peer.user == user }
      updateTimer()
    }
  }

  /// Denies the checks that wait for a name and meet the condition.
  private func end(where condition: (Check) -> Bool) {
    let ended = denied.filter { condition($0.check) }
    denied.removeAll { condition($0.check) }
    for (check, answers) in ended { deny(check, answers, names[check.peer.user]?.answer ?? .absent) }
  }

  public override func timerFired(at now: Instant) {
    let late = waiting.filter { $0.deadline <= now }
    waiting.removeAll { $0.deadline <= now }
    for check in late { check.decide("the name service does not respond; try again, or check with getent(1)") }
    end { $0.deadline <= now }
    updateTimer()
  }

  private func updateTimer() { wake = (waiting + denied.map(\.check)).map(\.deadline).min() }

  private func lists(for right: Right) -> [AccessList] { right == .observe ? [observers, controllers] : [controllers] }

  private func has(_ right: Right, _ peer: Peer, _ answers: Accounts.Answers) -> Bool {
    lists(for: right).contains { $0.matches(peer, answers) }
  }

  private func deny(_ check: Check, _ answers: Accounts.Answers, _ name: Accounts.Answer) {
    var answers = answers
    answers[.userName(check.peer.user)] = name
    check.decide(
      AccessList.denial(
        of: check.right, for: check.peer, lists: lists(for: check.right), key: "\(check.right)-users", section: section, answers))
  }
}
