// Access decisions from a peer's kernel credentials (SO_PEERCRED) and the configured lists. Polkit.swift queries polkit.

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

  /// The peer of this socket, or nil if the kernel reports no credentials.
  init?(socket: CInt) {
    var pid: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0
    var groups = [UInt32](repeating: 0, count: 64)
    var count = CInt(groups.count)
    var code = clinux_peer(socket, &pid, &user, &group, &groups, &count)
    if code == -ERANGE {
      // SO_PEERGROUPS is fixed when the peer connects, so the second call cannot need more space.
      groups = [UInt32](repeating: 0, count: Int(count))
      code = clinux_peer(socket, &pid, &user, &group, &groups, &count)
    }
    guard code == 0 else { return nil }
    self.pid = pid
    self.user = user
    self.groups = Set(groups.prefix(Int(count))).union([group])
  }
}

/// A permission that a method requires.
enum Right: String, Sendable {
  /// Read values and state.
  case observe
  /// Set properties, call actions and drive. Includes `observe`.
  case control
}

/// The access rules. Root and the daemon's own user always have both rights; the configuration lists groups and users for
/// each right, or delegates the decision to polkit.
struct Access: Sendable {
  enum Decision: Equatable {
    case granted
    /// What the caller lacks, and how to get it.
    case denied(String)
    /// Needs a query to polkit or a name lookup first.
    case ask
  }

  private struct List {
    let groups: [String]
    let users: [String]

    var queries: [Accounts.Query] { groups.map { .group($0) } + users.map { .user($0) } }
    var names: [String] { groups.map { "group \($0)" } + users.map { "user \($0)" } }

    /// Whether an entry matches the peer. A group or user that does not exist matches no peer.
    func has(_ peer: Peer, _ answers: Accounts.Answers) -> Bool {
      users.contains { answers[.user($0)] == .number(peer.user) }
        || groups.contains { if case .number(let group)? = answers[.group($0)] { peer.groups.contains(group) } else { false } }
    }
  }

  private let observers: List
  private let controllers: List
  let usesPolkit: Bool
  /// The lookups that the lists need.
  let queries: Set<Accounts.Query>

  init(_ control: Configuration.Control) {
    observers = List(groups: control.observe, users: control.observeUsers)
    controllers = List(groups: control.control, users: control.controlUsers)
    usesPolkit = control.usesPolkit
    queries = usesPolkit ? [] : Set(observers.queries + controllers.queries)
  }

  /// The lookups that a decision about this peer needs.
  func queries(for peer: Peer) -> Set<Accounts.Query> { queries.union([.userName(peer.user)]) }

  /// Decides whether the peer has the right. `known` returns the cached lookups.
  func decide(_ right: Right, for peer: Peer?, _ known: (Set<Accounts.Query>) -> Accounts.Answers) -> Decision {
    guard let peer else { return .denied("no peer credentials from the kernel") }
    if peer.user == 0 || peer.user == geteuid() { return .granted }
    if usesPolkit { return .ask }
    let queries = queries(for: peer)
    let answers = known(queries)
    guard queries.allSatisfy({ answers[$0] != nil }) else { return .ask }
    if controllers.has(peer, answers) || right == .observe && observers.has(peer, answers) { return .granted }
    if let failure = Self.lookupFailure(right == .control ? controllers.queries : observers.queries + controllers.queries, answers) {
      return .denied("\(failure); try again, or check with getent(1)")
    }
    let others = right == .control ? [] : observers.names
    let names = others + controllers.names.filter { !others.contains($0) }
    let required = names.isEmpty ? "root" : names.joined(separator: " or ")
    let group = (right == .control ? controllers : observers).groups.first
    let account: String? = if case .name(let name)? = answers[.userName(peer.user)] { name } else { nil }
    let name = account ?? "user \(peer.user)"
    // A number without an account cannot be added to a group.
    let remedy =
      if let group, let account { "sudo usermod -aG \(group) \(account), then log in again" } else {
        "add \(account ?? String(peer.user)) to \(right)-users in [control] of the configuration"
      }
    return .denied("\(name) lacks the \(right) right, which requires \(required); \(remedy)")
  }

  /// Groups and users in the lists that do not exist on this system or whose lookup failed.
  func problems(_ answers: Accounts.Answers) -> [String] {
    queries.compactMap { query in
      switch answers[query] {
      case .absent: "\(Self.label(query)) does not exist: its entry in [control] has no effect"
      case .failed: Self.lookupFailure([query], answers)
      default: nil
      }
    }.sorted()
  }

  /// A message for the first lookup that failed.
  private static func lookupFailure(_ queries: [Accounts.Query], _ answers: Accounts.Answers) -> String? {
    for query in queries {
      if case .failed(let reason)? = answers[query] { return "cannot look up \(label(query)): \(reason)" }
    }
    return nil
  }

  private static func label(_ query: Accounts.Query) -> String {
    switch query {
    case .user(let name): "user \(name)"
    case .group(let name): "group \(name)"
    case .userName(let number): "user \(number)"
    case .groupName(let number): "group \(number)"
    }
  }
}
