// Signing in and out: tokens become sessions, and cookies are looked up. No I/O.

import Protocols

final class Sessions {
  /// The maximum number; the oldest one ends when there are more.
  private static let maxCount = 64

  /// A token in a file, which can be used any number of times.
  struct NamedToken {
    let name: String
    let token: Token
    let rights: Rights
  }

  enum SignIn {
    /// `owner`: the name of the token, or `the link`.
    case accepted(owner: String, cookie: String)
    case rejected
    /// Too many tokens were wrong.
    case limited
  }

  private let named: [NamedToken]
  private var link: OneTimeLink?
  private let linkRights: Rights
  /// Called with each token of a link to be printed.
  private let show: (Token) -> Void
  private var failures: RateLimit
  private var sessions: [String: Session] = [:]
  /// Cookies, oldest first.
  private var order: [String] = []

  /// `linkRights`: the rights of browsers that sign in with a printed link; nil to print none.
  init(_ named: [NamedToken], linkRights: Rights?, at now: Instant, show: @escaping (Token) -> Void) {
    (self.named, self.linkRights, self.show) = (named, linkRights ?? Rights(), show)
    failures = RateLimit(burst: 20, perSecond: 20 / 60, at: now)
    if linkRights != nil {
      let link = OneTimeLink(at: now)
      self.link = link
      show(link.token)
    }
  }

  /// Creates a session if the token is valid. At most 20 wrong tokens are accepted per minute; then all are rejected for a while.
  func signIn(_ token: String, at now: Instant) -> SignIn {
    guard failures.isOpen(at: now) else { return .limited }
    guard let (owner, rights) = owner(of: token, at: now) else {
      _ = failures.take(at: now)
      return .rejected
    }
    return .accepted(owner: owner, cookie: add(Session(rights, at: now), at: now))
  }

  private func owner(of given: String, at now: Instant) -> (String, Rights)? {
    var found: (String, Rights)?
    // All are compared, so that the time does not depend on which one matches.
    for named in named where named.token.matches(given) { found = ("token \(named.name)", named.rights) }
    if let found { return found }
    switch link?.present(given, at: now) {
    case .accepted: return ("the link", linkRights)
    case .renewed: if let link { show(link.token) }
    case .unknown, nil: break
    }
    return nil
  }

  /// Returns the cookie of the session.
  private func add(_ session: Session, at now: Instant) -> String {
    for cookie in order where sessions[cookie]?.isExpired(at: now) == true { end(cookie, "the session has expired") }
    if order.count >= Self.maxCount { end(order[0], "too many other browsers have signed in") }
    let cookie = Token.random().text
    sessions[cookie] = session
    order.append(cookie)
    return cookie
  }

  /// The session of a cookie, unless it has ended.
  func session(_ cookie: String?, at now: Instant) -> Session? {
    guard let cookie, let session = sessions[cookie] else { return nil }
    guard session.isExpired(at: now) else { return session }
    end(cookie, "the session has expired")
    return nil
  }

  /// Ends a session and closes its WebSockets.
  func end(_ cookie: String, _ reason: String) {
    sessions.removeValue(forKey: cookie)?.end(reason)
    order.removeAll { $0 == cookie }
  }
}
