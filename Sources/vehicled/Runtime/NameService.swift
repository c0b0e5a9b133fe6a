// Lookups of users and groups for the loop (Accounts of ServiceRuntime). They run on two threads of their own, never on the loop: the name
// service (NSS) can query a directory on the network, which can hang.

import Glibc
import Protocols
import ServiceRuntime

@Loop final class NameService {
  typealias Query = Accounts.Query
  typealias Answer = Accounts.Answer
  typealias Answers = Accounts.Answers

  /// The lifetime of an answer: an ID can be reassigned at any time.
  static let maxAge: Nanoseconds = .second
  /// The maximum time that a caller waits. Once a lookup has been running for longer, callers that need it fail at once.
  static let timeout: Nanoseconds = 5 * .second
  private static let maxAnswers = 1024

  private struct Entry {
    var answer: Answer
    /// The time of the answer, or nil if it has been invalidated.
    var at: Instant?
  }

  /// A waiting caller, the answers so far, and the queries that are still unanswered.
  private struct Waiter {
    var answers: Answers
    var missing: Set<Query>
    let finish: @Loop @Sendable (Answers) -> Void
  }

  private let resolve: @Sendable (Query) -> Answer
  private let timeout: Nanoseconds
  private let maxAge: Nanoseconds
  private lazy var worker = Worker()
  /// Looks up the names of users without a right, so that many of them delay no other lookup.
  private lazy var guestWorker = Worker()
  private var pendingGuests = 0
  /// The maximum number of lookups for guests, who are users without a right, at a time. Messages to further guests contain their IDs.
  static let maxPendingGuests = 16
  private var entries: [Query: Entry] = [:]
  /// The start time of each lookup that has no answer yet.
  private var pending: [Query: Instant] = [:]
  private var waiters: [Waiter] = []
  private lazy var timer = Timer { [weak self] now in self?.timedOut(now) }
  /// Called when the ID of a name, or the name of an ID, has changed.
  var changed: @Loop () -> Void = {}

  /// `resolve` looks up one account; it runs on a thread of its own and may block.
  init(
    timeout: Nanoseconds = NameService.timeout, maxAge: Nanoseconds = NameService.maxAge,
    resolve: @escaping @Sendable (Query) -> Answer = Accounts.resolve
  ) {
    self.timeout = timeout
    self.maxAge = maxAge
    self.resolve = resolve
  }

  /// The answers that are cached and at most `maxAge` old.
  func cachedAnswers(_ queries: Set<Query>) -> Answers {
    let now = Clock.monotonic()
    return queries.reduce(into: [:]) { answers, query in
      if let entry = entries[query], let at = entry.at, now - at <= maxAge { answers[query] = entry.answer }
    }
  }

  /// The latest answers, however old.
  func lastAnswers(_ queries: Set<Query>) -> Answers {
    queries.reduce(into: [:]) { answers, query in answers[query] = entries[query]?.answer }
  }

  /// Calls `finish` with the name of a user, like `find`. While the names of too many guests are being looked up, `finish` gets `.absent`
  /// for further guests.
  func findName(of user: UInt32, isGuest: Bool, then finish: @escaping @Loop @Sendable (Answer) -> Void) {
    let query = Query.userName(user)
    let needsLookup = cachedAnswers([query]).isEmpty && pending[query] == nil
    if isGuest, needsLookup, pendingGuests >= Self.maxPendingGuests { return finish(.absent) }
    find([query], isGuest: isGuest) { finish($0[query] ?? .absent) }
  }

  /// Calls `finish` with an answer to each query: at once if all are cached, otherwise after the lookup or the timeout.
  func find(_ queries: Set<Query>, then finish: @escaping @Loop @Sendable (Answers) -> Void) {
    find(queries, isGuest: false, then: finish)
  }

  private func find(_ queries: Set<Query>, isGuest: Bool, then finish: @escaping @Loop @Sendable (Answers) -> Void) {
    let now = Clock.monotonic()
    var answers = cachedAnswers(queries)
    var missing = queries.filter { answers[$0] == nil }
    for query in missing {
      guard let start = pending[query], now - start >= timeout else { continue }
      answers[query] = Self.timeoutAnswer
      missing.remove(query)
    }
    if missing.isEmpty { return finish(answers) }
    waiters.append(Waiter(answers: answers, missing: missing, finish: finish))
    let new = missing.filter { pending[$0] == nil }
    for query in new { pending[query] = now }
    if !timer.isSet { timer.set(now + timeout) }
    if new.isEmpty { return }
    pendingGuests += isGuest ? 1 : 0
    (isGuest ? guestWorker : worker).run { [resolve] () throws(ValueError) in
      Answers(uniqueKeysWithValues: new.map { ($0, resolve($0)) })
    } then: { [weak self] result in
      if isGuest { self?.pendingGuests -= 1 }
      self?.received((try? result.get()) ?? [:])
    }
  }

  /// Invalidates all cached answers.
  func invalidate() {
    for query in entries.keys { entries[query]?.at = nil }
  }

  /// The last known name of a user, or `user 4711` if it is unknown.
  func name(of user: UInt32) -> String {
    if user == geteuid() { return Accounts.ownName }
    if user == 0 { return "root" }
    if case .name(let name)? = entries[.userName(user)]?.answer { return name }
    return "user \(user)"
  }

  private static let timeoutAnswer = Answer.failed("the name service does not respond")

  private func received(_ answers: Answers) {
    let now = Clock.monotonic()
    var hasChanged = false
    if entries.count > Self.maxAnswers {
      entries = entries.filter { !$0.key.isUserName || $0.value.at.map { now - $0 <= maxAge } ?? false }
    }
    for (query, answer) in answers {
      pending[query] = nil
      if let before = entries[query]?.answer, before != answer, !before.isFailed, !answer.isFailed { hasChanged = true }
      entries[query] = Entry(answer: answer, at: now)
    }
    deliver(answers)
    if hasChanged { changed() }
  }

  private func timedOut(_ now: Instant) {
    deliver(pending.filter { now - $0.value >= timeout }.mapValues { _ in Self.timeoutAnswer })
    let first = waiters.flatMap(\.missing).compactMap { pending[$0] }.min()
    timer.set(first.map { $0 + timeout })
  }

  private func deliver(_ answers: Answers) {
    var finished: [Waiter] = []
    for index in waiters.indices {
      for query in waiters[index].missing {
        guard let answer = answers[query] else { continue }
        waiters[index].answers[query] = answer
        waiters[index].missing.remove(query)
      }
      if waiters[index].missing.isEmpty { finished.append(waiters[index]) }
    }
    waiters.removeAll { $0.missing.isEmpty }
    if waiters.isEmpty { timer.set(nil) }
    for waiter in finished { waiter.finish(waiter.answers) }
  }
}

extension NameService.Query {
  fileprivate var isUserName: Bool { if case .userName = self { true } else { false } }
}

extension NameService.Answer {
  var isFailed: Bool { if case .failed = self { true } else { false } }
}
