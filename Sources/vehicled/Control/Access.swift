// Who may do what, by the credentials that the kernel gives for the peer of a socket. Polkit itself is asked elsewhere.

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

/// What a caller must be allowed to.
enum Right: String, Sendable {
  /// To see.
  case observe
  /// To set, call and drive. Includes seeing.
  case control
}

/// Who has which right. Root and the daemon's own user always have both; the configuration lists groups and users for
/// each, or leaves it to polkit.
struct Access: Sendable {
  enum Decision: Equatable {
    case granted
    /// What the caller lacks, and how to mend it.
    case denied(String)
    /// Polkit is to be asked.
    case ask
  }

  private struct List {
    let groups: Set<UInt32>
    let users: Set<UInt32>
    let names: [String]
    let firstGroup: String?
    /// What this machine does not have.
    let unknown: [String]

    /// A group or user that does not exist lets nobody in.
    init(groups: [String], users: [String]) {
      self.groups = Set(groups.compactMap { getgrnam($0)?.pointee.gr_gid })
      self.users = Set(users.compactMap { getpwnam($0)?.pointee.pw_uid ?? UInt32($0) })
      firstGroup = groups.first
      names = groups.map { "in group \($0)" } + users.map { "user \($0)" }
      unknown =
        groups.filter { getgrnam($0) == nil }.map { "group \($0)" }
        + users.filter { getpwnam($0) == nil && UInt32($0) == nil }.map { "user \($0)" }
    }

    func has(_ peer: Peer) -> Bool { users.contains(peer.user) || !groups.isDisjoint(with: peer.groups) }
  }

  private let observers: List
  private let controllers: List
  private let asksPolkit: Bool

  init(_ control: Configuration.Control) {
    observers = List(groups: control.observe, users: control.observeUsers)
    controllers = List(groups: control.control, users: control.controlUsers)
    asksPolkit = control.asksPolkit
  }

  /// Groups and users in the lists that this machine does not have.
  var unknown: [String] { observers.unknown + controllers.unknown.filter { !observers.unknown.contains($0) } }

  /// Whether the peer has the right.
  func decide(_ right: Right, for peer: Peer?) -> Decision {
    guard let peer else { return .denied("the kernel does not say who is asking") }
    if peer.user == 0 || peer.user == geteuid() { return .granted }
    if asksPolkit { return .ask }
    if controllers.has(peer) || right == .observe && observers.has(peer) { return .granted }
    let others = right == .control ? [] : observers.names
    let names = others + controllers.names.filter { !others.contains($0) }
    let wanted = names.isEmpty ? "root" : names.joined(separator: " or ")
    let group = (right == .control ? controllers : observers).firstGroup
    let mend =
      group.map { "sudo usermod -aG \($0) \(peer.name), then log in again" } ?? "add to \(right)-users in [control] of the configuration"
    return .denied("to \(right) one must be \(wanted), and \(peer.name) is not; \(mend)")
  }
}

extension Peer {
  /// The user's name, or number.
  var name: String { getpwuid(user).map { String(cString: $0.pointee.pw_name) } ?? "user \(user)" }
  /// `bob (pid 1234)`.
  var words: String { "\(name) (pid \(pid))" }
}
