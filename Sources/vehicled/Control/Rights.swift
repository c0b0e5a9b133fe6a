// Which clients have which rights: decided from the lists at once where the names in them are known, else once they have been looked up,
// or by polkit. Calls that last are decided again when the rules or the names change.

import Protocols

extension Methods {
  /// Decides by what takes its time: names are looked up, or polkit is asked. `answer` gets what the peer lacks, or nil.
  func ask(_ right: Right, of peer: Peer, answer: @escaping @Loop @Sendable (String?) -> Void) {
    let access = access
    if access.asksPolkit { polkit.ask(right, of: peer, answer: answer) }
    accounts.find(access.queries(for: peer)) { [weak self] answers in
      // Polkit needs no names; people who read who drives do.
      if !access.asksPolkit { answer(self?.refusal(of: right, for: peer, answers)) }
    }
  }

  /// Decides again about every call that lasts: the access rules are others.
  func reviewAccess() {
    accounts.forget()
    let peers = access.asksPolkit ? [] : admission.sessions.values.compactMap(\.peer)
    accounts.find(peers.reduce(into: access.queries) { $0.formUnion(access.queries(for: $1)) }) { [weak self] answers in
      guard let self else { return }
      for session in admission.sessions.values { session.accessChanged(answers) }
    }
  }

  /// The same where the lists decide: names may stand for other users and groups than before.
  func reviewAccounts() {
    if !access.asksPolkit { reviewAccess() }
  }

  /// Whether it is a set-point under the lease that this user was given: whoever drives was let in, and has no time.
  func drives(_ call: Call) -> Bool {
    guard [Contract.Set.name, Contract.Call.name].contains(call.call.method), let device = call.call.text(of: "device"),
      let lease = call.call.text(of: "lease"), let held = try? board.state(of: device).device.lease
    else { return false }
    return held.token == lease && held.user == call.peer?.user
  }

  /// What a peer lacks for the right under the present rules, where it is to be told at once; nil where it has it.
  func refusal(of right: Right, for peer: Peer?, _ answers: Accounts.Answers) -> String? {
    switch access.decide(right, for: peer, { _ in answers }) {
    case .granted: nil
    case .denied(let missing): missing
    case .ask: "who decides has changed: ask again"
    }
  }

  /// Whether the client is known to have a right. Where names have to be looked up first it is not, and is when it tries again.
  func hasRight(_ session: Session) -> Bool {
    if session.has(.observe) { return true }
    switch access.decide(.observe, for: session.peer, accounts.known) {
    case .granted: return true
    case .denied: return false
    case .ask:
      if !access.asksPolkit { session.peer.map { accounts.find(access.queries(for: $0)) { _ in } } }
      return false
    }
  }

  /// Decides whether the client may make long calls: its rights come before what it says. `finish` gets what it lacks, or nil.
  func decideLongCalls(for session: Session, then finish: @escaping @Loop @Sendable (String?) -> Void) {
    if hasRight(session) { return finish(nil) }
    guard let peer = session.peer else { return finish("the kernel does not say who is asking") }
    ask(.observe, of: peer, answer: finish)
  }
}
