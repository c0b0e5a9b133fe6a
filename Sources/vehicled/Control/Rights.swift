// The rights of clients: decided from the lists at once if their names are cached, else after a lookup, or by polkit. Streams are
// checked again when the rules or the names change.

import Protocols

extension Methods {
  /// Decides after a name lookup or a query to polkit. `answer` gets what the peer lacks, or nil.
  func authorize(_ right: Right, for peer: Peer, answer: @escaping @Loop @Sendable (String?) -> Void) {
    let access = access
    if access.usesPolkit { polkit.authorize(right, for: peer, answer: answer) }
    accounts.find(access.queries(for: peer)) { [weak self] answers in
      // Polkit needs no names, but status shows the name of the lease holder.
      if !access.usesPolkit { answer(self?.refusal(of: right, for: peer, answers)) }
    }
  }

  /// Checks every stream again after a change of the access rules.
  func reviewAccess() {
    accounts.forget()
    let peers = access.usesPolkit ? [] : admission.sessions.values.compactMap(\.peer)
    accounts.find(peers.reduce(into: access.queries) { $0.formUnion(access.queries(for: $1)) }) { [weak self] answers in
      guard let self else { return }
      for session in admission.sessions.values { session.accessChanged(answers) }
    }
  }

  /// Checks every stream again after a change of users or groups, if the lists decide.
  func reviewAccounts() {
    if !access.usesPolkit { reviewAccess() }
  }

  /// Whether the call is a set-point under a lease of this user. Drivers were authorized before and must not wait for a lookup.
  func drives(_ call: Call) -> Bool {
    guard [Contract.Set.name, Contract.Call.name].contains(call.call.method), let device = call.call.text(of: "device"),
      let lease = call.call.text(of: "lease"), let held = try? hub.state(of: device).device.lease
    else { return false }
    return held.token == lease && held.user == call.peer?.user
  }

  /// What a peer lacks for the right under the current rules; nil if it has the right.
  func refusal(of right: Right, for peer: Peer?, _ answers: Accounts.Answers) -> String? {
    switch access.decide(right, for: peer, { _ in answers }) {
    case .granted: nil
    case .denied(let missing): missing
    case .ask: "the access rules have changed: try again"
    }
  }

  /// Whether the client is known to have a right. False while names are looked up; a later try succeeds.
  func hasRight(_ session: Session) -> Bool {
    if session.has(.observe) { return true }
    switch access.decide(.observe, for: session.peer, accounts.known) {
    case .granted: return true
    case .denied: return false
    case .ask:
      if !access.usesPolkit { session.peer.map { accounts.find(access.queries(for: $0)) { _ in } } }
      return false
    }
  }

  /// Decides whether the client may make long calls, before they are read. `finish` gets what it lacks, or nil.
  func decideLongCalls(for session: Session, then finish: @escaping @Loop @Sendable (String?) -> Void) {
    if hasRight(session) { return finish(nil) }
    guard let peer = session.peer else { return finish("no peer credentials from the kernel") }
    authorize(.observe, for: peer, answer: finish)
  }
}
