// The groups and users that have a right, and the message for a client that lacks it.

/// A permission that a method requires. Each right includes the ones before it.
public enum Right: Comparable, Sendable {
  /// Read values and state.
  case observe
  /// Set properties and call actions that do not move anything.
  case control
  /// Hold the motion lease.
  case drive
}

/// Groups and users that have a right.
public struct AccessList: Equatable, Sendable {
  public let groups: [String]
  public let users: [String]

  public init(groups: [String] = [], users: [String] = []) { (self.groups, self.users) = (groups, users) }

  public var queries: [Accounts.Query] { groups.map { .group($0) } + users.map { .user($0) } }

  /// Whether an entry matches the peer. A group or user that does not exist matches no peer.
  public func matches(_ peer: Peer, _ answers: Accounts.Answers) -> Bool {
    users.contains { answers[.user($0)] == .number(peer.user) }
      || groups.contains { if case .number(let group)? = answers[.group($0)] { peer.groups.contains(group) } else { false } }
  }

  /// The message for a peer that lacks a right. `lists` grant the right; the message suggests adding the peer to the first one. `key` is
  /// the configuration key for users in `section`. `object` names what the right applies to, such as ` for ev`.
  public static func denial(
    of right: Right, for peer: Peer, lists: [AccessList], key: String, section: String, object: String = "", _ answers: Accounts.Answers
  ) -> String {
    if let failure = lookupFailure(lists.flatMap(\.queries), answers) { return "\(failure); try again, or check with getent(1)" }
    let names = lists.flatMap(\.queries).map(\.label).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
    let required = names.isEmpty ? "root" : names.joined(separator: " or ")
    let account: String? = if case .name(let name)? = answers[.userName(peer.user)] { name } else { nil }
    // Preferably a group that exists and grants no other right.
    let higherGroups = Set(lists.dropFirst().flatMap(\.groups))
    let groups = lists.first?.groups ?? []
    let leastPrivileged = groups.first { group in
      if case .number? = answers[.group(group)] { !higherGroups.contains(group) } else { false }
    }
    // A user ID without an account cannot be added to a group.
    let remedy =
      if let group = leastPrivileged ?? groups.first, let account { "sudo usermod -aG \(group) \(account), then log in again" } else {
        "add \(account ?? String(peer.user)) to \(key) in \(section) of the configuration"
      }
    return "\(account ?? "user \(peer.user)") lacks the \(right) right\(object), which requires \(required); \(remedy)"
  }

  /// A message for the first lookup that failed.
  public static func lookupFailure(_ queries: [Accounts.Query], _ answers: Accounts.Answers) -> String? {
    for query in queries {
      if case .failed(let reason)? = answers[query] { return "cannot look up \(query.label): \(reason)" }
    }
    return nil
  }
}
