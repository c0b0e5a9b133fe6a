// Who may do what, by the credentials that the kernel gives for the peer of a socket.

import CLinux
import Glibc
import Protocols

/// The process at the other end of a Unix socket.
struct Peer: Sendable {
  let pid: Int32
  let user: UInt32
  let groups: Set<UInt32>

  /// A peer of these credentials.
  init(pid: Int32, user: UInt32, groups: Set<UInt32>) {
    self.pid = pid
    self.user = user
    self.groups = groups
  }

  /// The peer of this socket, or nil where the kernel does not say.
  init?(socket: CInt) {
    var pid: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0
    var groups = [UInt32](repeating: 0, count: 256)
    var count = CInt(groups.count)
    guard clinux_peer(socket, &pid, &user, &group, &groups, &count) == 0 else { return nil }
    self.pid = pid
    self.user = user
    self.groups = Set(groups.prefix(Int(count))).union([group])
  }
}

/// The two rights. Root and the daemon's own user always have both; the configuration names groups for each.
struct Access: Sendable {
  private let observers: Set<UInt32>
  private let controllers: Set<UInt32>

  /// Rights for the members of these groups; a group that does not exist has no members.
  init(observe: [String], control: [String]) {
    func numbers(_ names: [String]) -> Set<UInt32> { Set(names.compactMap { getgrnam($0)?.pointee.gr_gid }) }
    observers = numbers(observe)
    controllers = numbers(control)
  }

  func mayObserve(_ peer: Peer?) -> Bool { may(peer, observers) || mayControl(peer) }
  func mayControl(_ peer: Peer?) -> Bool { may(peer, controllers) }

  private func may(_ peer: Peer?, _ groups: Set<UInt32>) -> Bool {
    guard let peer else { return false }
    return peer.user == 0 || peer.user == geteuid() || !peer.groups.isDisjoint(with: groups)
  }
}
