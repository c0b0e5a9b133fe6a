// The process at the other end of a Unix socket, identified by the credentials that the kernel reports (SO_PEERCRED).

import CLinux
import Glibc

/// The process at the other end of a Unix socket.
public struct Peer: Sendable {
  public let pid: Int32
  public let user: UInt32
  public let groups: Set<UInt32>

  /// A peer with these credentials.
  public init(pid: Int32, user: UInt32, groups: Set<UInt32>) {
    self.pid = pid
    self.user = user
    self.groups = groups
  }

  /// The peer of this socket, or nil if the kernel reports no credentials.
  public init?(socket: CInt) {
    var pid: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0
    var groups = [UInt32](repeating: 0, count: 64)
    var count = CInt(groups.count)
    var code = clinux_peer(socket, &pid, &user, &group, &groups, &count)
    if code == -ERANGE {
      // The groups of SO_PEERGROUPS are fixed when the peer connects, so the second call needs no more space than the first reported.
      groups = [UInt32](repeating: 0, count: Int(count))
      code = clinux_peer(socket, &pid, &user, &group, &groups, &count)
    }
    guard code == 0 else { return nil }
    self.pid = pid
    self.user = user
    self.groups = Set(groups.prefix(Int(count))).union([group])
  }

  /// The user at the other end of this socket, which is cheaper to get than all credentials; nil if the kernel reports no user.
  public static func user(of socket: CInt) -> UInt32? {
    var user: UInt32 = 0
    return clinux_peer_user(socket, &user) == 0 ? user : nil
  }

  /// Whether the peer is root or the user of this process, who always have all rights.
  public var isOwner: Bool { user == 0 || user == geteuid() }
}
