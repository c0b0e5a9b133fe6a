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
      // The groups of SO_PEERGROUPS are fixed when the peer connects, so the second call needs no more space than the first reported.
      groups = [UInt32](repeating: 0, count: Int(count))
      code = clinux_peer(socket, &pid, &user, &group, &groups, &count)
    }
    guard code == 0 else { return nil }
    self.pid = pid
    self.user = user
    self.groups = Set(groups.prefix(Int(count))).union([group])
  }
}

/// A permission that a method requires. Each right includes the ones before it.
enum Right: Comparable, Sendable {
  /// Read values and state.
  case observe
  /// Set properties and call actions that do not move anything.
  case control
  /// Hold the motion lease.
  case drive
}

/// What a right is required for.
enum Scope: Equatable, Sendable {
  /// The daemon, or all devices.
  case daemon
  case device(String)
  /// At least one device; the method checks the right for each device that it names.
  case someDevice
}

/// The rights of one client.
struct Rights: Equatable, Sendable {
  /// For the daemon, and for each device that is not in `devices`.
  var everywhere: Right?
  /// For the devices that have lists of their own, and on which the client has a right.
  var devices: [String: Right] = [:]

  func include(_ right: Right, on scope: Scope) -> Bool {
    switch scope {
    case .daemon: everywhere.includes(right)
    case .device(let name): (devices[name] ?? everywhere).includes(right)
    case .someDevice: everywhere.includes(right) || devices.values.contains { $0 >= right }
    }
  }

  /// The devices that the client may see; nil if it may see all.
  var visibleDevices: Set<String>? { everywhere == nil ? Set(devices.keys) : nil }
  func canSee(_ device: String) -> Bool { visibleDevices?.contains(device) ?? true }
}

extension Right? {
  fileprivate func includes(_ required: Right) -> Bool { map { $0 >= required } ?? false }
}

/// The access rules. Root and the daemon's own user always have all rights; the configuration lists groups and users for
/// each right, on all devices or on one, or delegates the decision to polkit.
struct Access: Sendable {
  enum Decision: Equatable {
    case granted(Rights)
    /// The message: which right the caller lacks, and how to get it.
    case denied(String)
    /// The decision requires a query to polkit or a name lookup first.
    case needsLookup
  }

  private struct List {
    let groups: [String]
    let users: [String]

    init(_ groups: [String], _ users: [String]) { (self.groups, self.users) = (groups, users) }

    var queries: [NameService.Query] { groups.map { .group($0) } + users.map { .user($0) } }
    var names: [String] { groups.map { "group \($0)" } + users.map { "user \($0)" } }

    /// Whether an entry matches the peer. A group or user that does not exist matches no peer.
    func matches(_ peer: Peer, _ answers: NameService.Answers) -> Bool {
      users.contains { answers[.user($0)] == .number(peer.user) }
        || groups.contains { if case .number(let group)? = answers[.group($0)] { peer.groups.contains(group) } else { false } }
    }
  }

  /// The lists of each right that apply to the daemon, or to one device.
  private struct Rules {
    let observers: List
    let controllers: List
    /// nil if the configuration has no list of drivers: then controllers may drive.
    let drivers: List?
    /// The section of the configuration that contains the lists, for messages.
    let section: String

    /// `own` are the lists of the section. If it is the section of a device, `general` are the lists for all devices, which apply as well.
    init(_ own: Configuration.AccessLists, and general: Configuration.AccessLists = .init(), section: String) {
      observers = List(own.observe + general.observe, own.observeUsers + general.observeUsers)
      controllers = List(own.control + general.control, own.controlUsers + general.controlUsers)
      let limitsDriving = own.limitsDriving || general.limitsDriving
      drivers = limitsDriving ? List(own.drive + general.drive, own.driveUsers + general.driveUsers) : nil
      self.section = section
    }

    /// The list of a right, then those of the rights that include it.
    func lists(for right: Right) -> [List] {
      switch right {
      case .observe: [observers, controllers] + (drivers.map { [$0] } ?? [])
      case .control: [controllers] + (drivers.map { [$0] } ?? [])
      case .drive: [drivers ?? controllers]
      }
    }

    /// The highest right that the lists grant.
    func right(of peer: Peer, _ answers: NameService.Answers) -> Right? {
      if (drivers ?? controllers).matches(peer, answers) { return .drive }
      if controllers.matches(peer, answers) { return .control }
      return observers.matches(peer, answers) ? .observe : nil
    }
  }

  private let general: Rules
  private let devices: [String: Rules]
  let usesPolkit: Bool
  /// The lookups that the lists need.
  let queries: Set<NameService.Query>
  /// The sections that contain each group and user.
  private let sections: [NameService.Query: [String]]

  init(_ control: Configuration.Control) {
    general = Rules(control.lists, section: "[control]")
    devices = control.devices.reduce(into: [:]) { $0[$1.key] = Rules($1.value, and: control.lists, section: "[device.\($1.key)]") }
    usesPolkit = control.usesPolkit
    var sections: [NameService.Query: [String]] = [:]
    let own = control.devices.sorted { $0.key < $1.key }.map { Rules($0.value, section: "[device.\($0.key)]") }
    for lists in usesPolkit ? [] : [general] + own {
      for query in Set(lists.lists(for: .observe).flatMap(\.queries)) { sections[query, default: []].append(lists.section) }
    }
    self.sections = sections
    queries = Set(sections.keys)
  }

  /// The lookups that a decision about this peer needs.
  func queries(for peer: Peer) -> Set<NameService.Query> { queries.union([.userName(peer.user)]) }

  /// Decides whether the peer has the right. `known` returns the cached lookups.
  func decide(_ right: Right, on scope: Scope, for peer: Peer?, _ known: (Set<NameService.Query>) -> NameService.Answers) -> Decision {
    guard let peer else { return .denied("no peer credentials from the kernel") }
    if peer.user == 0 || peer.user == geteuid() { return .granted(Rights(everywhere: .drive)) }
    if usesPolkit { return .needsLookup }
    let queries = queries(for: peer)
    let answers = known(queries)
    guard queries.allSatisfy({ answers[$0] != nil }) else { return .needsLookup }
    let rights = Rights(
      everywhere: general.right(of: peer, answers), devices: devices.compactMapValues { $0.right(of: peer, answers) })
    return rights.include(right, on: scope) ? .granted(rights) : .denied(denial(of: right, on: scope, for: peer, answers))
  }

  /// The message: which right the peer lacks, and how to get it.
  func denial(of right: Right, on scope: Scope, for peer: Peer, _ answers: NameService.Answers) -> String {
    let device: String? = if case .device(let name) = scope { name } else { nil }
    let rules = device.flatMap { devices[$0] } ?? general
    let lists = rules.lists(for: right)
    if let failure = Self.lookupFailure(lists.flatMap(\.queries), answers) { return "\(failure); try again, or check with getent(1)" }
    let names = lists.flatMap(\.names).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
    let required = names.isEmpty ? "root" : names.joined(separator: " or ")
    let group = lists.first?.groups.first
    let account: String? = if case .name(let name)? = answers[.userName(peer.user)] { name } else { nil }
    let name = account ?? "user \(peer.user)"
    // A number without an account cannot be added to a group.
    let remedy =
      if let group, let account { "sudo usermod -aG \(group) \(account), then log in again" } else {
        "add \(account ?? String(peer.user)) to \(right == .drive && rules.drivers == nil ? .control : right)-users in \(rules.section) of the configuration"
      }
    let object = device.map { " for \(printable($0, limit: 32))" } ?? ""
    return "\(name) lacks the \(right) right\(object), which requires \(required); \(remedy)"
  }

  /// Groups and users in the lists that do not exist on this system or whose lookup failed.
  func problems(_ answers: NameService.Answers) -> [String] {
    sections.flatMap { query, sections -> [String] in
      switch answers[query] {
      case .absent: sections.map { "\(Self.label(query)) does not exist: its entry in \($0) has no effect" }
      case .failed: Self.lookupFailure([query], answers).map { [$0] } ?? []
      default: []
      }
    }.sorted()
  }

  /// A message for the first lookup that failed.
  private static func lookupFailure(_ queries: [NameService.Query], _ answers: NameService.Answers) -> String? {
    for query in queries {
      if case .failed(let reason)? = answers[query] { return "cannot look up \(label(query)): \(reason)" }
    }
    return nil
  }

  private static func label(_ query: NameService.Query) -> String {
    switch query {
    case .user(let name): "user \(name)"
    case .group(let name): "group \(name)"
    case .userName(let number): "user \(number)"
    case .groupName(let number): "group \(number)"
    }
  }
}
