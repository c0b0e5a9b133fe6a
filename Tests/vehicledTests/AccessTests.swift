import CLinux
import Glibc
import Testing

@testable import vehicled

@Suite("Access") struct AccessTests {
  private static let nobody: UInt32 = 65534

  @Test func theKernelSaysWhoIsAtTheOtherEnd() throws {
    var ends: [CInt] = [0, 0]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { ends.forEach { close($0) } }
    let peer = try #require(Peer(socket: ends[0]))
    #expect(peer.pid == getpid() && peer.user == geteuid() && peer.groups.contains(getegid()))
  }

  @Test func rootAndTheDaemonsOwnUserHaveBothRights() {
    let access = Access(observe: [], control: [])
    for user in [0, geteuid()] {
      let peer = Peer(pid: 1, user: user, groups: [])
      #expect(access.mayObserve(peer) && access.mayControl(peer))
    }
  }

  @Test func groupsGiveTheRightsTheyAreNamedFor() {
    let access = Access(observe: ["tty"], control: ["dialout", "no-such-group"])
    let (tty, dialout) = (getgrnam("tty").pointee.gr_gid, getgrnam("dialout").pointee.gr_gid)
    let observer = Peer(pid: 1, user: Self.nobody, groups: [tty])
    #expect(access.mayObserve(observer) && !access.mayControl(observer))
    let controller = Peer(pid: 1, user: Self.nobody, groups: [7, dialout])
    #expect(access.mayObserve(controller) && access.mayControl(controller))
    let stranger = Peer(pid: 1, user: Self.nobody, groups: [Self.nobody])
    #expect(!access.mayObserve(stranger) && !access.mayControl(stranger))
    #expect(!access.mayObserve(nil) && !access.mayControl(nil))
  }
}
