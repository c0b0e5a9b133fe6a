// Users and groups of this computer, by name and by ID. Lookups run on a thread of their own, never on the loop: the name service (NSS)
// can query a directory on the network, which can hang. Source: getpwnam_r(3), getgrnam_r(3), nsswitch.conf(5).

import Glibc
import Protocols
import ServiceRuntime

@Loop final class NameService {
  /// A query to the name service.
  enum Query: Hashable, Sendable {
    /// The ID of a user. Digits are an ID unless they are the name of a user.
    case user(String)
    case group(String)
    case userName(UInt32)
    case groupName(UInt32)
  }

  enum Answer: Equatable, Sendable {
    case number(UInt32)
    case name(String)
    /// There is no such user or group.
    case absent
    /// The lookup failed, for this reason.
    case failed(String)
  }

  typealias Answers = [Query: Answer]

  /// The lifetime of an answer: an ID can be reassigned at any time.
  static let maxAge: Nanoseconds = .second
  /// The maximum time that a caller waits. While a lookup has been running for longer, callers that need it fail at once.
  static let timeout: Nanoseconds = 5 * .second
  private static let maxAnswers = 1024

  private struct Entry {
    var answer: Answer
    /// The time of the answer, or nil if it has been invalidated.
    var at: Instant?
  }

  /// A waiting caller, the answers so far, and the queries without one.
  private struct Waiter {
    var answers: Answers
    var missing: Set<Query>
    let finish: @Loop @Sendable (Answers) -> Void
  }

  private let resolve: @Sendable (Query) -> Answer
  private let timeout: Nanoseconds
  private let maxAge: Nanoseconds
  private lazy var worker = Worker()
  private var entries: [Query: Entry] = [:]
  /// The start time of each lookup without an answer yet.
  private var pending: [Query: Instant] = [:]
  private var waiters: [Waiter] = []
  private lazy var timer = Timer { [weak self] now in self?.timedOut(now) }
  /// Called when a name has another ID, or an ID another name, than before.
  var changed: @Loop () -> Void = {}

  /// `resolve` looks up one account; it runs on a thread of its own and may block.
  init(
    timeout: Nanoseconds = NameService.timeout, maxAge: Nanoseconds = NameService.maxAge,
    resolve: @escaping @Sendable (Query) -> Answer = NameService.resolve
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

  /// Answers each query: at once if all answers are cached, otherwise after the lookup or the timeout.
  func find(_ queries: Set<Query>, then finish: @escaping @Loop @Sendable (Answers) -> Void) {
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
    worker.run { [resolve] () throws(ValueError) in
      Answers(uniqueKeysWithValues: new.map { ($0, resolve($0)) })
    } then: { [weak self] result in
      self?.received((try? result.get()) ?? [:])
    }
  }

  /// Invalidates all cached answers.
  func invalidate() {
    for query in entries.keys { entries[query]?.at = nil }
  }

  /// The last known name of a user, or `user 4711` if it is unknown.
  func name(of user: UInt32) -> String {
    if user == geteuid() { return Self.ownName }
    if user == 0 { return "root" }
    if case .name(let name)? = entries[.userName(user)]?.answer { return name }
    return "user \(user)"
  }

  private static let timeoutAnswer = Answer.failed("the name service does not respond")

  private func received(_ answers: Answers) {
    let now = Clock.monotonic()
    var hasChanged = false
    if entries.count > Self.maxAnswers { entries = entries.filter { $0.value.at.map { now - $0 <= maxAge } ?? false } }
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

extension NameService.Answer {
  var isFailed: Bool { if case .failed = self { true } else { false } }
}

extension NameService {
  /// The name of the daemon's own user. First used at start, before the loop runs, because the lookup blocks.
  nonisolated static let ownName: String = if case .name(let name) = resolve(.userName(geteuid())) { name } else { "user \(geteuid())" }

  /// Queries the name service. Blocks.
  nonisolated static func resolve(_ query: Query) -> Answer {
    switch query {
    case .user(let name):
      let answer = lookUp(passwd()) {
        getpwnam_r(name, $0, $1, $2, $3)
      } read: {
        .number($0.pw_uid)
      }
      return answer == .absent ? UInt32(name).map { .number($0) } ?? .absent : answer
    case .group(let name):
      return lookUp(group()) {
        getgrnam_r(name, $0, $1, $2, $3)
      } read: {
        .number($0.gr_gid)
      }
    case .userName(let number):
      return lookUp(passwd()) {
        getpwuid_r(number, $0, $1, $2, $3)
      } read: {
        .name(String(cString: $0.pw_name))
      }
    case .groupName(let number):
      return lookUp(group()) {
        getgrgid_r(number, $0, $1, $2, $3)
      } read: {
        .name(String(cString: $0.gr_name))
      }
    }
  }

  private typealias LookupFunction<Record> = (
    UnsafeMutablePointer<Record>, UnsafeMutablePointer<CChar>, Int, UnsafeMutablePointer<UnsafeMutablePointer<Record>?>
  ) -> CInt

  /// Makes a call with larger and larger buffers, because a group with thousands of members needs a large one.
  private nonisolated static func lookUp<Record>(_ empty: Record, call: LookupFunction<Record>, read: (Record) -> Answer) -> Answer {
    var size = 1024
    while true {
      var record = empty
      var found: UnsafeMutablePointer<Record>?
      let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
      defer { buffer.deallocate() }
      let code = call(&record, buffer, size, &found)
      if found != nil { return read(record) }
      guard code == ERANGE, size < 16 << 20 else {
        // The error code for an unknown name depends on the NSS module.
        return [0, ENOENT, ESRCH].contains(code) ? .absent : .failed(errnoMessage(code))
      }
      size *= 4
    }
  }
}
