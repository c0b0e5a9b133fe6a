// Users and groups of this machine, by name and by number. The name service (NSS) may ask a directory on the network, which can
// hang: it is asked on a thread of its own, never on the loop. Facts: getpwnam_r(3), getgrnam_r(3), nsswitch.conf(5).

import Glibc
import Protocols

@Loop final class Accounts {
  /// A question to the name service.
  enum Query: Hashable, Sendable {
    /// The number of a user; a number is one too where no user has it as name.
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
    /// The name service cannot say, for this reason.
    case failed(String)
  }

  typealias Answers = [Query: Answer]

  /// How long an answer is used: a number may be given to another user at any time.
  static let maxAge: Nanoseconds = .second
  /// How long a caller waits. While the name service hangs for longer, callers do not wait at all.
  static let timeout: Nanoseconds = 5 * .second
  private static let maxAnswers = 1024

  private struct Entry {
    var answer: Answer
    /// When it was given; nil once it is not to be used any more.
    var at: Instant?
  }

  /// A caller that waits, and what it waits for.
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
  /// When each question was asked that has no answer yet.
  private var asked: [Query: Instant] = [:]
  private var waiters: [Waiter] = []
  private lazy var timer = Timer { [weak self] now in self?.timeIsUp(now) }
  /// Called when a name has another number, or a number another name, than before.
  var changed: @Loop () -> Void = {}

  /// The accounts as `resolve` has them; it may block.
  init(
    timeout: Nanoseconds = Accounts.timeout, maxAge: Nanoseconds = Accounts.maxAge,
    resolve: @escaping @Sendable (Query) -> Answer = Accounts.resolve
  ) {
    self.timeout = timeout
    self.maxAge = maxAge
    self.resolve = resolve
  }

  /// The answers that are known and at most `maxAge` old.
  func known(_ queries: Set<Query>) -> Answers {
    let now = Clock.monotonic()
    return queries.reduce(into: [:]) { answers, query in
      if let entry = entries[query], let at = entry.at, now - at <= maxAge { answers[query] = entry.answer }
    }
  }

  /// Gives an answer to each question: at once where all are known, else when the name service has answered or `timeout` is over.
  func find(_ queries: Set<Query>, then finish: @escaping @Loop @Sendable (Answers) -> Void) {
    let now = Clock.monotonic()
    var answers = known(queries)
    var missing = queries.filter { answers[$0] == nil }
    for query in missing {
      guard let start = asked[query], now - start >= timeout else { continue }
      answers[query] = Self.late
      missing.remove(query)
    }
    if missing.isEmpty { return finish(answers) }
    waiters.append(Waiter(answers: answers, missing: missing, finish: finish))
    let new = missing.filter { asked[$0] == nil }
    for query in new { asked[query] = now }
    if !timer.isSet { timer.set(now + timeout) }
    if new.isEmpty { return }
    worker.run { [resolve] () throws(ValueError) in
      Answers(uniqueKeysWithValues: new.map { ($0, resolve($0)) })
    } then: { [weak self] result in
      self?.arrived((try? result.get()) ?? [:])
    }
  }

  /// Uses no answer any more that was given before.
  func forget() {
    for query in entries.keys { entries[query]?.at = nil }
  }

  /// The last known name of a user, for people to read; `user 4711` where there is none.
  func name(of user: UInt32) -> String {
    if user == geteuid() { return Self.ownName }
    if user == 0 { return "root" }
    if case .name(let name)? = entries[.userName(user)]?.answer { return name }
    return "user \(user)"
  }

  private static let late = Answer.failed("the name service does not respond")

  private func arrived(_ answers: Answers) {
    let now = Clock.monotonic()
    var isOther = false
    if entries.count > Self.maxAnswers { entries = entries.filter { $0.value.at.map { now - $0 <= maxAge } ?? false } }
    for (query, answer) in answers {
      asked[query] = nil
      if let before = entries[query]?.answer, before != answer, !before.isFailed, !answer.isFailed { isOther = true }
      entries[query] = Entry(answer: answer, at: now)
    }
    deliver(answers)
    if isOther { changed() }
  }

  private func timeIsUp(_ now: Instant) {
    deliver(asked.filter { now - $0.value >= timeout }.mapValues { _ in Self.late })
    // Whoever still waits asked later.
    let first = waiters.flatMap(\.missing).compactMap { asked[$0] }.min()
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

extension Accounts.Answer {
  var isFailed: Bool { if case .failed = self { true } else { false } }
}

extension Accounts {
  /// The name of the daemon's own user. The program looks it up before there is a loop.
  nonisolated static let ownName: String = if case .name(let name) = resolve(.userName(geteuid())) { name } else { "user \(geteuid())" }

  /// Asks the name service. Blocks.
  nonisolated static func resolve(_ query: Query) -> Answer {
    switch query {
    case .user(let name):
      let answer = look(passwd()) {
        getpwnam_r(name, $0, $1, $2, $3)
      } read: {
        .number($0.pw_uid)
      }
      return answer == .absent ? UInt32(name).map { .number($0) } ?? .absent : answer
    case .group(let name):
      return look(group()) {
        getgrnam_r(name, $0, $1, $2, $3)
      } read: {
        .number($0.gr_gid)
      }
    case .userName(let number):
      return look(passwd()) {
        getpwuid_r(number, $0, $1, $2, $3)
      } read: {
        .name(String(cString: $0.pw_name))
      }
    case .groupName(let number):
      return look(group()) {
        getgrgid_r(number, $0, $1, $2, $3)
      } read: {
        .name(String(cString: $0.gr_name))
      }
    }
  }

  private typealias Call<Record> = (
    UnsafeMutablePointer<Record>, UnsafeMutablePointer<CChar>, Int, UnsafeMutablePointer<UnsafeMutablePointer<Record>?>
  ) -> CInt

  /// Calls with a buffer that is large enough; a group with thousands of members needs much.
  private nonisolated static func look<Record>(_ empty: Record, call: Call<Record>, read: (Record) -> Answer) -> Answer {
    var size = 1024
    while true {
      var record = empty
      var found: UnsafeMutablePointer<Record>?
      let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
      defer { buffer.deallocate() }
      let code = call(&record, buffer, size, &found)
      if found != nil { return read(record) }
      guard code == ERANGE, size < 16 << 20 else {
        // Which code means that there is none depends on the service.
        return [0, ENOENT, ESRCH].contains(code) ? .absent : .failed(systemWords(code))
      }
      size *= 4
    }
  }
}
