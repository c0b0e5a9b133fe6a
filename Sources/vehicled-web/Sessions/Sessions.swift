// Signing in and out: tokens become sessions, which are found by their secrets. Times are on the boot clock. No I/O.

import Protocols

final class Sessions {
  /// The maximum number. When there are more, one of the same token ends if there is any, or else one without WebSockets, the oldest first.
  private static let maxCount = 64

  /// A token in a file, which can be used any number of times.
  struct NamedToken {
    let name: String
    let token: Token
    let rights: Rights
  }

  enum SignIn {
    /// `owner`: the name of the token, or `the link`.
    case accepted(owner: String, SessionSecret)
    case rejected
    /// Rejected, as many others before it.
    case limited
  }

  private let named: [NamedToken]
  private var link: OneTimeLink?
  private let linkRights: Rights
  /// Called with each token of a link to be printed.
  private let show: (Token) -> Void
  /// Called with the sessions of tokens in files after each change.
  private let store: ([SessionRecord]) -> Void
  private var failures: RateLimit
  /// By the hash of the secret.
  private var entries: [SecretHash: Entry] = [:]
  /// The keys of `entries`, oldest first.
  private var order: [SecretHash] = []

  private struct Entry {
    let session: Session
    /// The token in a file with which the browser has signed in; nil for the link.
    let token: SecretHash?
  }

  /// `linkRights`: the rights of browsers that sign in with a printed link; nil to print none. `restored`: the sessions that were stored
  /// before a restart. One whose token was removed or replaced meanwhile has ended; the others only observe.
  init(
    _ named: [NamedToken], linkRights: Rights?, restored: [SessionRecord] = [], at now: Instant, show: @escaping (Token) -> Void,
    store: @escaping ([SessionRecord]) -> Void = { _ in }
  ) {
    (self.named, self.linkRights, self.show, self.store) = (named, linkRights ?? Rights(), show, store)
    failures = RateLimit(burst: 20, perSecond: 20 / 60, at: now)
    if linkRights != nil {
      let link = OneTimeLink(at: now)
      self.link = link
      show(link.token)
    }
    restore(restored, at: now)
  }

  private func restore(_ records: [SessionRecord], at now: Instant) {
    let rights = Dictionary(named.map { ($0.token.hash, $0.rights) }) { $1 }
    // An expiry that is too late is that of another boot.
    let expiries = now + 1...now + Session.lifetime * .second
    for record in records.suffix(Self.maxCount) where expiries.contains(record.expiry) && entries[record.secret] == nil {
      guard let rights = rights[record.token] else { continue }
      entries[record.secret] = Entry(session: Session(restored: rights, expiry: record.expiry, at: now), token: record.token)
      order.append(record.secret)
    }
    if order.count < records.count { save() }
  }

  private func save() {
    store(
      order.compactMap { secret in
        guard let entry = entries[secret], let token = entry.token else { return nil }
        return SessionRecord(secret: secret, token: token, expiry: entry.session.expiry)
      })
  }

  /// Creates a session if the token is valid. `old`: that of the browser, which ends then, so that a kiosk that signs in with each start
  /// has only one. A valid token is always accepted, so that no other local user can prevent it with wrong ones; of these, more than 20
  /// in a minute are reported as such, so that the caller does not log each.
  func signIn(_ token: String, replacing old: SessionSecret? = nil, at now: Instant) -> SignIn {
    guard let (owner, entry) = entry(for: token, at: now) else { return failures.take(at: now) == nil ? .rejected : .limited }
    if let old { remove(old.hash, "this browser has signed in again") }
    return .accepted(owner: owner, add(entry, at: now))
  }

  private func entry(for given: String, at now: Instant) -> (owner: String, Entry)? {
    var found: NamedToken?
    // All are compared, so that the time does not depend on which one matches.
    for named in named where named.token.matches(given) { found = named }
    if let found { return ("token \(found.name)", Entry(session: Session(found.rights, at: now), token: found.token.hash)) }
    switch link?.present(given, at: now) {
    case .accepted: return ("the link", Entry(session: Session(linkRights, at: now), token: nil))
    case .renewed: if let link { show(link.token) }
    case .unknown, nil: break
    }
    return nil
  }

  private func add(_ entry: Entry, at now: Instant) -> SessionSecret {
    endExpired(at: now)
    if order.count >= Self.maxCount { remove(superfluous(entry.token), "too many other browsers have signed in") }
    let secret = SessionSecret.random()
    entries[secret.hash] = entry
    order.append(secret.hash)
    save()
    return secret
  }

  /// The session that ends in favour of a new one.
  private func superfluous(_ token: SecretHash?) -> SecretHash {
    let sameToken = order.filter { entries[$0]?.token == token }
    for candidates in [sameToken, order] {
      if let idle = candidates.first(where: { entries[$0]?.session.isConnected == false }) { return idle }
      if let oldest = candidates.first { return oldest }
    }
    return order[0]
  }

  /// The session with this secret, unless it has ended.
  func session(_ secret: SessionSecret?, at now: Instant) -> Session? {
    guard let secret, let session = entries[secret.hash]?.session else { return nil }
    guard session.isExpired(at: now) else { return session }
    end(secret, "the session has expired")
    return nil
  }

  /// Ends the sessions that have expired, because their WebSockets may be open.
  func endExpired(at now: Instant) {
    let expired = order.filter { entries[$0]?.session.isExpired(at: now) == true }
    for secret in expired { remove(secret, "the session has expired") }
    if !expired.isEmpty { save() }
  }

  /// Ends a session and closes its WebSockets.
  func end(_ secret: SessionSecret, _ reason: String) {
    if remove(secret.hash, reason) { save() }
  }

  /// Returns whether there was such a session.
  @discardableResult private func remove(_ secret: SecretHash, _ reason: String) -> Bool {
    guard let entry = entries.removeValue(forKey: secret) else { return false }
    entry.session.end(reason)
    order.removeAll { $0 == secret }
    return true
  }
}
