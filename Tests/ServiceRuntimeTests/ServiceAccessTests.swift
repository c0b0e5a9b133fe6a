// The access check of a service, with accounts that the test defines.

import Glibc
import Protocols
import Synchronization
import Testing

@testable import ServiceRuntime

@Suite struct ServiceAccessTests {
  private static let ada = Peer(pid: 1, user: 1000, groups: [1000, 50])

  /// The decision about a right of Ada's. The lookups block until `isReady`.
  private func denial(
    of right: Right, observe: AccessList, control: AccessList, timeout: Nanoseconds = ServiceAccess.timeout,
    resolve: @escaping @Sendable (Accounts.Query) -> Accounts.Answer = Self.resolve
  ) throws -> String? {
    let loop = try EventLoop(handlesSignals: false)
    let access = ServiceAccess(observe, control, section: "[access]", timeout: timeout, loop: loop, resolve: resolve)
    var decision: String??
    access.check(right, for: Self.ada) { decision = .some($0) }
    #expect(decision == nil)
    #expect(try loop.run { decision != nil })
    // The answers are known now, unless they have failed.
    var second: String??
    access.check(right, for: Self.ada) { second = .some($0) }
    #expect(try loop.run { second != nil })
    #expect(second == decision)
    return decision ?? "no decision"
  }

  @Sendable private static func resolve(_ query: Accounts.Query) -> Accounts.Answer {
    switch query {
    case .group("family"): .number(50)
    case .group("admin"): .number(60)
    case .user("ada"): .number(1000)
    case .userName(1000): .name("ada")
    default: .absent
    }
  }

  @Test func `a group or a user of a list grants its right, and control includes observe`() throws {
    let (family, admin) = (AccessList(groups: ["family"]), AccessList(groups: ["admin"]))
    #expect(try denial(of: .observe, observe: family, control: admin) == nil)
    #expect(try denial(of: .observe, observe: admin, control: family) == nil)
    #expect(try denial(of: .control, observe: admin, control: .init(users: ["ada"])) == nil)
    #expect(
      try denial(of: .control, observe: family, control: admin)
        == "ada lacks the control right, which requires group admin; sudo usermod -aG admin ada, then log in again")
    #expect(
      try denial(of: .observe, observe: .init(groups: ["none"]), control: .init(users: ["eve"]))
        == "ada lacks the observe right, which requires group none or user eve; sudo usermod -aG none ada, then log in again")
  }

  @Test func `the remedy names the group that grants the least`() {
    let answers: Accounts.Answers = [.group("admin"): .number(60), .group("guests"): .number(70), .userName(1000): .name("ada")]
    let lists = [AccessList(groups: ["admin", "absent", "guests"]), AccessList(groups: ["admin"])]
    let ada = Peer(pid: 1, user: 1000, groups: [])
    let message = AccessList.denial(of: .observe, for: ada, lists: lists, key: "observe-users", section: "[control]", answers)
    #expect(message.hasSuffix("; sudo usermod -aG guests ada, then log in again"), "\(message)")
  }

  @Test func `root and the own user have every right without a lookup`() throws {
    let loop = try EventLoop(handlesSignals: false)
    let access = ServiceAccess(.init(), .init(), section: "[access]", timeout: .second, loop: loop) { _ in .failed("not expected") }
    var decisions: [String?] = []
    for user in [0, geteuid()] { access.check(.drive, for: Peer(pid: 1, user: user, groups: [])) { decisions.append($0) } }
    #expect(decisions == [nil, nil])
  }

  @Test func `users without a right do not delay the checks of others, however slow the lookup of their names is`() throws {
    let isBlocked = Mutex(true)
    defer { isBlocked.withLock { $0 = false } }
    let lookups = Mutex(0)
    let loop = try EventLoop(handlesSignals: false)
    let access = ServiceAccess(
      AccessList(groups: ["family"]), AccessList(), section: "[access]", timeout: 20 * .second, maxAge: 1, loop: loop
    ) { query in
      if case .userName = query {
        lookups.withLock { $0 += 1 }
        while isBlocked.withLock({ $0 }) { usleep(1000) }
      }
      return Self.resolve(query)
    }
    var denials: [String?] = []
    for user in UInt32(2000)..<2100 { access.check(.observe, for: Peer(pid: 1, user: user, groups: [])) { denials.append($0) } }
    // The number of waiting lookups is limited; further messages have the ID.
    #expect(try loop.run { denials.count == 100 - ServiceAccess.maxPendingNames })
    #expect(denials.allSatisfy { $0?.hasPrefix("user 20") == true })
    var granted = 0
    for _ in 0..<3 {
      access.check(.observe, for: Self.ada) { if $0 == nil { granted += 1 } }
      let before = granted
      #expect(try loop.run { granted > before })
    }
    isBlocked.withLock { $0 = false }
    #expect(try loop.run { denials.count == 100 })
    #expect(granted == 3 && lookups.withLock { $0 } == ServiceAccess.maxPendingNames)
  }

  @Test func `who is known to have a right is decided at once, by the latest answers`() throws {
    let loop = try EventLoop(handlesSignals: false)
    let access = ServiceAccess(
      AccessList(groups: ["family"]), AccessList(), section: "[access]", timeout: .second, maxAge: 1, loop: loop, resolve: Self.resolve)
    #expect(access.isKnown(Peer(pid: 1, user: 0, groups: [])) && !access.isKnown(Self.ada))
    #expect(try loop.run { access.isKnown(Self.ada) })
    #expect(!access.isKnown(Peer(pid: 1, user: 1001, groups: [51])))
  }

  @Test func `a name service that fails or does not respond denies`() throws {
    let failed = try denial(of: .observe, observe: .init(groups: ["family"]), control: .init()) { _ in .failed("broken") }
    #expect(failed == "cannot look up group family: broken; try again, or check with getent(1)")
    let hangs = Mutex(true)
    defer { hangs.withLock { $0 = false } }
    let silent = try denial(of: .observe, observe: .init(groups: ["family"]), control: .init(), timeout: 20 * .millisecond) { _ in
      while hangs.withLock({ $0 }) { usleep(1000) }
      return .absent
    }
    #expect(silent == "the name service does not respond; try again, or check with getent(1)")
  }
}
