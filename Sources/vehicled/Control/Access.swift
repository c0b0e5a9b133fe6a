// Access decisions based on a peer's kernel credentials (SO_PEERCRED) and the configured lists. Polkit.swift queries polkit.

import Protocols
import ServiceRuntime

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

  /// The lists of each right that apply to the daemon, or to one device.
  private struct Rules {
    let observers: AccessList
    let controllers: AccessList
    /// The drivers, or nil if the configuration sets neither `drive` nor `drive-users`, so that controllers may drive.
    let drivers: AccessList?
    /// The section of the configuration that contains the lists, for messages.
    let section: String
    /// Groups that need not exist.
    let optional: Set<NameService.Query>

    /// `own` are the lists of the section. If it is the section of a device, `general` are the lists for all devices, which apply as well.
    init(_ own: Configuration.AccessLists, and general: Configuration.AccessLists = .init(), section: String) {
      observers = AccessList(groups: own.observe + general.observe, users: own.observeUsers + general.observeUsers)
      controllers = AccessList(groups: own.control + general.control, users: own.controlUsers + general.controlUsers)
      let limitsDriving = own.limitsDriving || general.limitsDriving
      drivers = limitsDriving ? AccessList(groups: own.drive + general.drive, users: own.driveUsers + general.driveUsers) : nil
      self.section = section
      optional = Set(own.optionalGroups.map { .group($0) })
    }

    /// The list of a right, then those of the rights that include it.
    func lists(for right: Right) -> [AccessList] {
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
  /// The sections that contain each group and user, except groups that need not exist.
  private let sections: [NameService.Query: [String]]

  init(_ control: Configuration.Control) {
    general = Rules(control.lists, section: "[control]")
    devices = control.devices.reduce(into: [:]) { $0[$1.key] = Rules($1.value, and: control.lists, section: "[device.\($1.key)]") }
    usesPolkit = control.usesPolkit
    var queries: Set<NameService.Query> = []
    var sections: [NameService.Query: [String]] = [:]
    let own = control.devices.sorted { $0.key < $1.key }.map { Rules($0.value, section: "[device.\($0.key)]") }
    for lists in usesPolkit ? [] : [general] + own {
      for query in Set(lists.lists(for: .observe).flatMap(\.queries)) {
        queries.insert(query)
        if !lists.optional.contains(query) { sections[query, default: []].append(lists.section) }
      }
    }
    (self.queries, self.sections) = (queries, sections)
  }

  /// The lookups that a decision about this peer needs. The peer's name is needed only for messages.
  func queries(for peer: Peer) -> Set<NameService.Query> { queries.union([.userName(peer.user)]) }

  /// The rights that the lists grant according to these answers. A name without an answer grants nothing.
  func rights(of peer: Peer, _ answers: NameService.Answers) -> Rights {
    if peer.isOwner { return Rights(everywhere: .drive) }
    if usesPolkit { return Rights() }
    return Rights(everywhere: general.right(of: peer, answers), devices: devices.compactMapValues { $0.right(of: peer, answers) })
  }

  /// Decides whether the peer has the right. `known` returns the cached answers.
  func decide(_ right: Right, on scope: Scope, for peer: Peer?, _ known: (Set<NameService.Query>) -> NameService.Answers) -> Decision {
    guard let peer else { return .denied("no peer credentials from the kernel") }
    if peer.isOwner { return .granted(rights(of: peer, [:])) }
    if usesPolkit { return .needsLookup }
    let queries = queries(for: peer)
    let answers = known(queries)
    guard queries.allSatisfy({ answers[$0] != nil }) else { return .needsLookup }
    let rights = rights(of: peer, answers)
    return rights.include(right, on: scope) ? .granted(rights) : .denied(denial(of: right, on: scope, for: peer, rights, answers))
  }

  /// The message: which right the peer with these rights lacks, and how to get it. The lists of a device that the peer may not see are not
  /// mentioned, so that the message is the same if there is no such device.
  func denial(of right: Right, on scope: Scope, for peer: Peer, _ rights: Rights, _ answers: NameService.Answers) -> String {
    let device: String? = if case .device(let name) = scope { name } else { nil }
    let rules = device.flatMap { rights.canSee($0) ? devices[$0] : nil } ?? general
    return AccessList.denial(
      of: right, for: peer, lists: rules.lists(for: right),
      key: "\(right == .drive && rules.drivers == nil ? .control : right)-users", section: rules.section,
      object: device.map { " for \(printable($0, limit: 32))" } ?? "", answers)
  }

  /// Messages about groups and users that the administrator has listed and that do not exist, and about lookups that have failed.
  func problems(_ answers: NameService.Answers) -> [String] {
    queries.flatMap { query -> [String] in
      switch answers[query] {
      case .absent: (sections[query] ?? []).map { "\(query.label) does not exist: its entry in \($0) has no effect" }
      case .failed: AccessList.lookupFailure([query], answers).map { [$0] } ?? []
      default: []
      }
    }.sorted()
  }
}
