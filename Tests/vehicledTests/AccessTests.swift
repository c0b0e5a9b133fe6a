import CLinux
import Glibc
import Testing

@testable import vehicled

@Suite("Access") struct AccessTests {
  private static let nobody: UInt32 = 65534

  @Test func `peer credentials come from the kernel`() throws {
    var ends: [CInt] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    defer { ends.forEach { close($0) } }
    let peer = try #require(Peer(socket: ends[0]))
    #expect(peer.pid == getpid() && peer.user == geteuid() && peer.groups.contains(getegid()))
  }

  private func peer(_ user: UInt32, _ groups: UInt32...) -> Peer { Peer(pid: 1, user: user, groups: Set(groups)) }

  /// The decision with these cached lookups; others are not known yet.
  private func decide(_ control: Configuration.Control, _ right: Right, for peer: Peer?, _ answers: Accounts.Answers = [:])
    -> Access.Decision
  {
    Access(control).decide(right, for: peer) { queries in answers.filter { queries.contains($0.key) } }
  }

  private static let listed = Configuration.Control(
    observe: ["family"], control: ["drivers", "no-such-group"], observeUsers: ["eve"], controlUsers: ["4711", "no-such-user"])
  private static let known: Accounts.Answers = [
    .group("family"): .number(50), .group("drivers"): .number(60), .group("no-such-group"): .absent, .user("eve"): .number(1000),
    .user("4711"): .number(4711), .user("no-such-user"): .absent,
    .userName(nobody): .name("nobody"), .userName(1000): .name("eve"), .userName(4711): .absent, .userName(61_003): .absent,
  ]

  @Test func rootAndTheDaemonsOwnUserHaveBothRights() {
    for usesPolkit in [false, true] {
      let control = Configuration.Control(observe: [], control: ["never-looked-up"], usesPolkit: usesPolkit)
      for user in [0, geteuid()] {
        #expect(decide(control, .observe, for: peer(user)) == .granted && decide(control, .control, for: peer(user)) == .granted)
      }
    }
  }

  @Test func `listed groups and users have their rights`() {
    func decide(_ right: Right, _ peer: Peer?) -> Access.Decision { self.decide(Self.listed, right, for: peer, Self.known) }
    for observer in [peer(Self.nobody, 50), peer(1000)] {
      #expect(decide(.observe, observer) == .granted && decide(.control, observer) != .granted)
    }
    for controller in [peer(Self.nobody, 7, 60), peer(4711)] {
      #expect(decide(.observe, controller) == .granted && decide(.control, controller) == .granted)
    }
    #expect(decide(.observe, nil) != .granted)
    #expect(
      decide(.control, peer(Self.nobody))
        == .denied(
          "nobody lacks the control right, which requires group drivers or group no-such-group or user 4711 or user no-such-user; "
            + "sudo usermod -aG drivers nobody, then log in again"))
    guard case .denied(let words) = decide(.observe, peer(Self.nobody)) else {
      Issue.record("a user without rights may observe")
      return
    }
    #expect(words.hasPrefix("nobody lacks the observe right, which requires group family or user eve or group drivers"))
    #expect(
      self.decide(Configuration.Control(observe: [], control: []), .control, for: peer(Self.nobody), Self.known)
        == .denied("nobody lacks the control right, which requires root; add nobody to control-users in [control] of the configuration"))
    // A UID without an account can be listed, but cannot be in a group.
    guard case .denied(let remedy) = decide(.control, peer(61_003)) else {
      Issue.record("a user without rights may control")
      return
    }
    #expect(remedy.hasSuffix("add 61003 to control-users in [control] of the configuration"), "\(remedy)")
  }

  @Test func `a failed lookup grants nothing`() {
    var answers = Self.known
    #expect(decide(Self.listed, .control, for: peer(Self.nobody, 60), answers.filter { $0.key != .user("eve") }) == .ask)
    answers[.group("family")] = .failed("the name service does not respond")
    #expect(decide(Self.listed, .control, for: peer(Self.nobody, 60), answers) == .granted)
    #expect(
      decide(Self.listed, .observe, for: peer(Self.nobody, 50), answers)
        == .denied("cannot look up group family: the name service does not respond; try again, or check with getent(1)"))
  }

  @Test func `problems name missing entries and failed lookups`() {
    var answers = Self.known
    answers[.user("eve")] = .failed("input/output error")
    #expect(
      Access(Self.listed).problems(answers) == [
        "cannot look up user eve: input/output error",
        "group no-such-group does not exist: its entry in [control] has no effect",
        "user no-such-user does not exist: its entry in [control] has no effect",
      ])
  }

  @Test func polkitDecidesAboutAllOtherUsers() {
    let control = Configuration.Control(control: ["drivers"], usesPolkit: true)
    #expect(decide(control, .control, for: peer(Self.nobody, 60), Self.known) == .ask)
    #expect(Access(control).queries.isEmpty)
  }
}
