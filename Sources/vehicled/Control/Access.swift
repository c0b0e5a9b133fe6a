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
    var groups = [UInt32](repeating: 0, count: 64)
    var count = CInt(groups.count)
    var code = clinux_peer(socket, &pid, &user, &group, &groups, &count)
    if code == -ERANGE {
      // They are those of when it connected: there are no more the second time.
      groups = [UInt32](repeating: 0, count: Int(count))
      code = clinux_peer(socket, &pid, &user, &group, &groups, &count)
    }
    guard code == 0 else { return nil }
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
    /// Polkit is to be asked, or names are to be looked up.
    case ask
  }

  private struct List {
    let groups: [String]
    let users: [String]

    var queries: [Accounts.Query] { groups.map { .group($0) } + users.map { .user($0) } }
    var names: [String] { groups.map { "in group \($0)" } + users.map { "user \($0)" } }

    /// A group or user that does not exist lets no client in.
    func has(_ peer: Peer, _ answers: Accounts.Answers) -> Bool {
      users.contains { answers[.user($0)] == .number(peer.user) }
        || groups.contains { if case .number(let group)? = answers[.group($0)] { peer.groups.contains(group) } else { false } }
    }
  }

  private let observers: List
  private let controllers: List
  let asksPolkit: Bool
  /// What must be looked up for the lists.
  let queries: Set<Accounts.Query>

  init(_ control: Configuration.Control) {
    observers = List(groups: control.observe, users: control.observeUsers)
    controllers = List(groups: control.control, users: control.controlUsers)
    asksPolkit = control.asksPolkit
    queries = asksPolkit ? [] : Set(observers.queries + controllers.queries)
  }

  /// What must be looked up to decide about a peer.
  func queries(for peer: Peer) -> Set<Accounts.Query> { queries.union([.userName(peer.user)]) }

  /// Whether the peer has the right. `known` gives what is known of the accounts.
  func decide(_ right: Right, for peer: Peer?, _ known: (Set<Accounts.Query>) -> Accounts.Answers) -> Decision {
    guard let peer else { return .denied("the kernel does not say who is asking") }
    if peer.user == 0 || peer.user == geteuid() { return .granted }
    if asksPolkit { return .ask }
    let queries = queries(for: peer)
    let answers = known(queries)
    guard queries.allSatisfy({ answers[$0] != nil }) else { return .ask }
    if controllers.has(peer, answers) || right == .observe && observers.has(peer, answers) { return .granted }
    if let trouble = Self.trouble(right == .control ? controllers.queries : observers.queries + controllers.queries, answers) {
      return .denied("\(trouble); try again, and see getent(1)")
    }
    let others = right == .control ? [] : observers.names
    let names = others + controllers.names.filter { !others.contains($0) }
    let wanted = names.isEmpty ? "root" : names.joined(separator: " or ")
    let group = (right == .control ? controllers : observers).groups.first
    let account: String? = if case .name(let name)? = answers[.userName(peer.user)] { name } else { nil }
    let name = account ?? "user \(peer.user)"
    // A number without an account cannot be added to a group.
    let remedy =
      if let group, let account { "sudo usermod -aG \(group) \(account), then log in again" } else {
        "add \(account ?? String(peer.user)) to \(right)-users in [control] of the configuration"
      }
    return .denied("to \(right) one must be \(wanted), and \(name) is not; \(remedy)")
  }

  /// Groups and users in the lists that this machine does not have, or that could not be looked up.
  func problems(_ answers: Accounts.Answers) -> [String] {
    queries.compactMap { query in
      switch answers[query] {
      case .absent: "there is no \(Self.words(query)) on this machine: the access lists name it in vain"
      case .failed: Self.trouble([query], answers)
      default: nil
      }
    }.sorted()
  }

  /// The first of the questions that could not be answered, and why.
  private static func trouble(_ queries: [Accounts.Query], _ answers: Accounts.Answers) -> String? {
    for query in queries {
      if case .failed(let reason)? = answers[query] { return "cannot look up \(words(query)): \(reason)" }
    }
    return nil
  }

  private static func words(_ query: Accounts.Query) -> String {
    switch query {
    case .user(let name): "user \(name)"
    case .group(let name): "group \(name)"
    case .userName(let number): "user \(number)"
    case .groupName(let number): "group \(number)"
    }
  }
}
