// What proves a session. A browser sends a cookie to all ports of a host, and so to servers of other users; the key it gives only to pages
// of the origin, with the port. The key is also what a page of another port lacks. The cookie is what a script in the page cannot read.

struct SessionSecret: Equatable, Sendable {
  let cookie: String
  let key: String

  /// 128 random bits each.
  static func random() -> SessionSecret { SessionSecret(cookie: Token.random().text, key: Token.random().text) }

  var hash: SecretHash { SecretHash(of: "\(cookie) \(key)".utf8) }
}
