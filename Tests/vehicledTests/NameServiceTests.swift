import Glibc
import Protocols
import ServiceRuntime
import Synchronization
import Testing

@testable import vehicled

/// A fake name service with given answers, which can hang.
final class FakeNameService: Sendable {
  let answers: Mutex<NameService.Answers>
  private let hangs = Mutex(false)
  private let count = Mutex(0)

  init(_ answers: NameService.Answers) { self.answers = Mutex(answers) }

  /// The number of queries.
  var questions: Int { count.withLock { $0 } }

  func hang(_ does: Bool) { hangs.withLock { $0 = does } }

  func resolve(_ query: NameService.Query) -> NameService.Answer {
    count.withLock { $0 += 1 }
    while hangs.withLock({ $0 }) { usleep(1000) }
    return answers.withLock { $0[query] ?? .absent }
  }
}

@Suite("NameService") @Loop struct NameServiceTests {
  /// The answers, once they have arrived.
  @Loop private final class Found {
    var answers: NameService.Answers?
    func find(_ nameService: NameService, _ queries: Set<NameService.Query>) {
      nameService.find(queries) { self.answers = $0 }
    }
  }

  private static let drivers = NameService.Query.group("drivers")

  @Test func `system accounts are found by name and ID`() {
    #expect(Accounts.resolve(.user("root")) == .number(0) && Accounts.resolve(.userName(0)) == .name("root"))
    #expect(Accounts.resolve(.group("root")) == .number(0) && Accounts.resolve(.groupName(0)) == .name("root"))
    #expect(Accounts.resolve(.user("4711")) == .number(4711) && Accounts.resolve(.user("no-such-user")) == .absent)
    #expect(Accounts.resolve(.group("4711")) == .absent && Accounts.resolve(.userName(3_000_000_000)) == .absent)
  }

  @Test func `answers are cached, and one lookup serves all callers`() async {
    let service = FakeNameService([Self.drivers: .number(60)])
    let nameService = NameService(maxAge: 3600 * .second, resolve: service.resolve)
    let (first, second) = (Found(), Found())
    first.find(nameService, [Self.drivers])
    second.find(nameService, [Self.drivers])
    #expect(first.answers == nil && nameService.cachedAnswers([Self.drivers]).isEmpty)
    #expect(await until { first.answers != nil && second.answers != nil })
    #expect(first.answers == [Self.drivers: .number(60)] && second.answers == first.answers && service.questions == 1)
    #expect(nameService.cachedAnswers([Self.drivers]) == [Self.drivers: .number(60)])
    nameService.invalidate()
    #expect(nameService.cachedAnswers([Self.drivers]).isEmpty)
    let old = NameService(maxAge: 20 * .millisecond, resolve: service.resolve)
    let third = Found()
    third.find(old, [Self.drivers])
    #expect(await until { third.answers != nil && old.cachedAnswers([Self.drivers]).isEmpty })
    #expect(service.questions == 2)
    first.find(old, [Self.drivers])
    #expect(await until { service.questions == 3 })
  }

  @Test func `a hanging lookup times out, and later callers do not wait`() async {
    let service = FakeNameService([Self.drivers: .number(60)])
    let nameService = NameService(timeout: 50 * .millisecond, maxAge: 3600 * .second, resolve: service.resolve)
    service.hang(true)
    let found = Found()
    found.find(nameService, [Self.drivers])
    // The loop is not blocked: this waits for one of its timers.
    #expect(await until { found.answers != nil })
    #expect(found.answers == [Self.drivers: .failed("the name service does not respond")])
    let next = Found()
    next.find(nameService, [Self.drivers])
    #expect(next.answers == found.answers && service.questions <= 1)
    service.hang(false)
    #expect(await until { nameService.cachedAnswers([Self.drivers]) == [Self.drivers: .number(60)] })
  }

  @Test func `users without a right do not delay the lookups of others`() async {
    let service = FakeNameService([Self.drivers: .number(60), .userName(1000): .name("ada")])
    let hangs = Mutex(true)
    defer { hangs.withLock { $0 = false } }
    let nameService = NameService { query in
      if case .userName(let user) = query, user >= 2000 { while hangs.withLock({ $0 }) { usleep(1000) } }
      return service.resolve(query)
    }
    var names: [NameService.Answer] = []
    for user in 2000..<2100 as Range<UInt32> { nameService.findName(of: user, isGuest: true) { names.append($0) } }
    // The number of waiting lookups is limited; the names of further users count as unknown.
    #expect(names == Array(repeating: .absent, count: 100 - NameService.maxPendingGuests))
    let found = Found()
    found.find(nameService, [Self.drivers])
    var name: NameService.Answer?
    nameService.findName(of: 1000, isGuest: false) { name = $0 }
    #expect(await until { found.answers == [Self.drivers: .number(60)] && name == .name("ada") })
    #expect(names.count == 100 - NameService.maxPendingGuests)
    hangs.withLock { $0 = false }
    #expect(await until { names.count == 100 })
    #expect(nameService.lastAnswers([Self.drivers, .userName(1000)]).count == 2)
  }

  @Test func `a changed ID is reported, and a failed lookup is not`() async {
    let service = FakeNameService([Self.drivers: .number(60)])
    let nameService = NameService(resolve: service.resolve)
    var changes = 0
    nameService.changed = { changes += 1 }
    for answer in [.number(60), .failed("down"), .number(60), .number(61), .absent] as [NameService.Answer] {
      service.answers.withLock { $0[Self.drivers] = answer }
      nameService.invalidate()
      let found = Found()
      found.find(nameService, [Self.drivers])
      #expect(await until { found.answers == [Self.drivers: answer] })
    }
    // A cached failure does not prevent another lookup.
    #expect(changes == 2)
  }
}
