// Decides which rights clients have, by the access lists or by a query to polkit. The lists decide at once if the names in them are cached,
// otherwise after a lookup. Streams are checked again when the rules or the names change.

import Protocols
import ServiceRuntime
import Varlink

extension Methods {
  /// Decides after a name lookup or a query to polkit. Returns a function that cancels the query.
  @discardableResult
  func authorize(
    _ right: Right, on scope: Scope, for peer: Peer, answer: @escaping @Loop @Sendable (Access.Decision) -> Void
  ) -> @Loop () -> Void {
    let access = access
    if access.usesPolkit {
      // Polkit needs no names, but status shows the name of the lease holder.
      nameService.findName(of: peer.user, isGuest: true) { _ in }
      return polkit.authorize(right, for: peer) { answer($0.map { .denied($0) } ?? .granted(Rights(everywhere: right))) }
    }
    nameService.find(access.queries) { [weak self] answers in
      guard let self else { return }
      // Users without a right cannot delay the lookups of the others.
      let isGuest = !access.rights(of: peer, answers).include(right, on: scope)
      nameService.findName(of: peer.user, isGuest: isGuest) { [weak self] name in
        guard let self else { return }
        answer(decide(right, on: scope, for: peer, answers.merging([.userName(peer.user): name]) { $1 }))
      }
    }
    return {}
  }

  /// Looks up all names again, then checks every stream against the access rules.
  func recheckStreams() {
    nameService.invalidate()
    nameService.find(access.queries) { [weak self] answers in
      guard let self else { return }
      for session in admission.sessions.values {
        // The name of a user whose call was granted may be unknown; a message then contains the ID.
        let name = session.peer.map { NameService.Query.userName($0.user) }
        let known = name.map { nameService.lastAnswers([$0]).merging([$0: .absent]) { known, _ in known } } ?? [:]
        session.recheckStream(answers.merging(known) { $1 })
      }
    }
  }

  /// Checks streams again after a change of users or groups, unless polkit decides.
  func recheckStreamsAfterNameChange() {
    if !access.usesPolkit { recheckStreams() }
  }

  /// The device that a call controls under a valid lease of the caller's user, or nil for other calls. The right was checked when the lease
  /// was granted, and setpoints must not wait for a lookup.
  func drivenDevice(of call: Call) -> String? {
    guard [Contract.Set.name, Contract.Call.name].contains(call.request.method), let device = call.request.text(of: "device"),
      let lease = call.request.text(of: "lease"), let held = try? hub.state(of: device).device.lease
    else { return nil }
    return held.token == lease && held.user == call.peer?.user ? device : nil
  }

  /// Decides under the current rules, with these answers.
  func decide(_ right: Right, on scope: Scope, for peer: Peer?, _ answers: NameService.Answers) -> Access.Decision {
    let decision = access.decide(right, on: scope, for: peer) { _ in answers }
    return decision == .needsLookup ? .denied("the access rules have changed: try again") : decision
  }

  /// Updates the rights of a stream's caller under the current rules. Returns the reason if the stream may not continue.
  func recheck(_ call: Call, _ answers: NameService.Answers) -> String? {
    guard let right = call.right, let peer = call.peer else { return nil }
    let device = call.devices.count == 1 ? call.devices.first : nil
    switch decide(right, on: device.map { .device($0) } ?? .someDevice, for: peer, answers) {
    case .denied(let missing): return missing
    case .granted(let rights) where call.updateRights(rights): return nil
    case .granted(let rights):
      let lost = call.devices.union(call.rights.visibleDevices ?? []).sorted().first { !rights.include(right, on: .device($0)) }
      return access.denial(of: right, on: lost.map { .device($0) } ?? .daemon, for: peer, rights, answers)
    case .needsLookup: return nil
    }
  }

  /// The state of a device on which the caller has the right that the method requires. An unknown device is reported only to clients
  /// that see all devices.
  func state(of device: String, for call: Call) throws(ContractError) -> DeviceState {
    guard let right = call.right, !call.rights.include(right, on: .device(device)) else {
      call.devices.insert(device)
      return try hub.state(of: device)
    }
    guard let peer = call.peer else { throw .permissionDenied() }
    let answers = nameService.cachedAnswers(access.queries(for: peer))
    throw .permissionDenied(missing: access.denial(of: right, on: .device(device), for: peer, call.rights, answers))
  }

  /// The state of one device, or the states of all devices that the caller may see if `device` is nil.
  func states(of device: String?, for call: Call) throws(ContractError) -> [DeviceState] {
    if let device { [try state(of: device, for: call)] } else { hub.states.filter { call.rights.canSee($0.device.name) } }
  }

  /// Resolves a reference to a device that the caller may see.
  func resolve(_ reference: String, for call: Call) throws(ContractError) -> (state: DeviceState, index: Int) {
    if let dot = reference.firstIndex(of: ".") { _ = try state(of: String(reference[..<dot]), for: call) }
    let property = try hub.resolve(reference, among: call.rights.visibleDevices)
    call.devices.insert(property.state.device.name)
    return property
  }

  /// Whether the client is known to have a right: according to the latest answers for the names in the lists, however old, or because a
  /// call of the same user was granted. Never waits, and does not look up the client's name.
  func isKnown(_ peer: Peer?) -> Bool {
    guard let peer else { return false }
    if peer.isOwner || admission.grantedUsers.contains(peer.user) { return true }
    let answers = nameService.lastAnswers(access.queries)
    if answers.count < access.queries.count { nameService.find(access.queries) { _ in } }
    return access.rights(of: peer, answers).include(.observe, on: .someDevice)
  }

  /// Decides whether the client may make calls of more than `Backlog.unauthorizedLimit`. `finish` gets nil, or the reason why it may not.
  /// Returns a function that cancels the decision.
  func decideLargeCalls(for session: Session, then finish: @escaping @Loop @Sendable (String?) -> Void) -> @Loop () -> Void {
    guard let peer = session.peer else {
      finish("no peer credentials from the kernel")
      return {}
    }
    if peer.isOwner || session.hasPolkitGrant(of: .observe) {
      finish(nil)
      return {}
    }
    return authorize(.observe, on: .someDevice, for: peer) { decision in
      if case .denied(let missing) = decision { finish(missing) } else { finish(nil) }
    }
  }
}
