// The links that the program prints: each signs in one browser, within ten minutes. A link that was used or has expired is replaced when
// a browser presents it, so that the terminal shows a valid one.

import Protocols

struct OneTimeLink {
  /// How long a link is valid, in minutes.
  static let lifetime: Int64 = 10
  /// The number of earlier links that are recognised.
  private static let maxEarlier = 8

  enum Presented: Equatable { case accepted, renewed, unknown }

  private(set) var token: Token
  private var expiry: Instant
  private var isUsed = false
  private var earlier: [Token] = []

  init(at now: Instant) {
    token = .random()
    expiry = now + Self.lifetime * 60 * .second
  }

  /// Uses up the link if it is valid. `renewed`: the token is that of an old link, and there is a new one to print.
  mutating func present(_ given: String, at now: Instant) -> Presented {
    let isValid = !isUsed && now < expiry
    if token.matches(given) {
      guard isValid else { return renew(at: now) }
      isUsed = true
      return .accepted
    }
    guard earlier.contains(where: { $0.matches(given) }) else { return .unknown }
    return isValid ? .unknown : renew(at: now)
  }

  private mutating func renew(at now: Instant) -> Presented {
    let known = (earlier + [token]).suffix(Self.maxEarlier)
    self = OneTimeLink(at: now)
    earlier = Array(known)
    return .renewed
  }
}
