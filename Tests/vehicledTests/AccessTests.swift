import CLinux
import Glibc
import Testing

@testable import vehicled

@Suite("Access") struct AccessTests {
  private static let nobody: UInt32 = 65534

  @Test func theKernelSaysWhoIsAtTheOtherEnd() throws {
    var ends: [CInt] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    defer { ends.forEach { close($0) } }
    let peer = try #require(Peer(socket: ends[0]))
    #expect(peer.pid == getpid() && peer.user == geteuid() && peer.groups.contains(getegid()))
  }

  private func peer(_ user: UInt32, _ groups: UInt32...) -> Peer { Peer(pid: 1, user: user, groups: Set(groups)) }

  @Test func rootAndTheDaemonsOwnUserHaveBothRights() {
    for asksPolkit in [false, true] {
      let access = Access(Configuration.Control(observe: [], control: [], asksPolkit: asksPolkit))
      for user in [0, geteuid()] {
        #expect(access.decide(.observe, for: peer(user)) == .granted && access.decide(.control, for: peer(user)) == .granted)
      }
    }
  }

  @Test func groupsAndUsersHaveTheRightsTheyAreNamedFor() {
    let access = Access(
      Configuration.Control(
        observe: ["tty"], control: ["dialout", "no-such-group"], observeUsers: ["games"], controlUsers: ["4711", "no-such-user"]))
    let (tty, dialout) = (getgrnam("tty").pointee.gr_gid, getgrnam("dialout").pointee.gr_gid)
    let games = getpwnam("games").pointee.pw_uid
    for observer in [peer(Self.nobody, tty), peer(games)] {
      #expect(access.decide(.observe, for: observer) == .granted && access.decide(.control, for: observer) != .granted)
    }
    for controller in [peer(Self.nobody, 7, dialout), peer(4711)] {
      #expect(access.decide(.observe, for: controller) == .granted && access.decide(.control, for: controller) == .granted)
    }
    #expect(access.decide(.observe, for: nil) != .granted)
    #expect(
      access.decide(.control, for: peer(Self.nobody))
        == .denied(
          "to control one must be in group dialout or in group no-such-group or user 4711 or user no-such-user, and nobody is not; "
            + "sudo usermod -aG dialout nobody, then log in again"))
    guard case .denied(let words) = access.decide(.observe, for: peer(Self.nobody)) else {
      Issue.record("a stranger sees")
      return
    }
    #expect(words.hasPrefix("to observe one must be in group tty or user games or in group dialout"))
    let closed = Access(Configuration.Control(observe: [], control: []))
    #expect(
      closed.decide(.control, for: peer(Self.nobody))
        == .denied("to control one must be root, and nobody is not; add to control-users in [control] of the configuration"))
  }

  @Test func polkitIsAskedOfAllOthers() {
    let access = Access(Configuration.Control(control: ["dialout"], asksPolkit: true))
    #expect(access.decide(.control, for: peer(Self.nobody, getgrnam("dialout").pointee.gr_gid)) == .ask)
  }
}
