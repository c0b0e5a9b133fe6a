// Signing in: links that work once, tokens of files, limits, the end of sessions, and restarts.

import Protocols
import Testing

@testable import vehicled_web

@Suite("Sessions of browsers") struct SessionTests {
  private final class Printed { var tokens: [String] = [] }
  private final class Stored { var records: [SessionRecord] = [] }

  private let printed = Printed()
  private static let minute = 60 * Nanoseconds.second

  private func sessions(_ named: [Sessions.NamedToken] = [], link: Rights? = Rights(control: ["ev"])) -> Sessions {
    Sessions(named, linkRights: link, at: 0) { [printed] in printed.tokens.append($0.text) }
  }

  private func token(_ text: String) -> Token { Token(SecretBytes(Array(text.utf8))) }

  /// The secret of a browser that was accepted.
  private func accepted(_ outcome: Sessions.SignIn) -> SessionSecret? { if case .accepted(_, let secret) = outcome { secret } else { nil } }
  private func isRejected(_ outcome: Sessions.SignIn) -> Bool { if case .rejected = outcome { true } else { false } }
  private func isLimited(_ outcome: Sessions.SignIn) -> Bool { if case .limited = outcome { true } else { false } }

  @Test func `a token matches only itself`() {
    let token = Token.random()
    #expect(token.text.count == 32 && token.text != Token.random().text && token.text.allSatisfy { $0.isHexDigit && !$0.isUppercase })
    #expect(token.matches(token.text) && !token.matches(String(token.text.dropLast())) && !token.matches(token.text + "0"))
    #expect(!token.matches("") && !self.token("abc").matches("abd"))
  }

  @Test func `a link signs in one browser, with its rights`() throws {
    let sessions = sessions()
    let link = try #require(printed.tokens.first)
    let cookie = try #require(accepted(sessions.signIn(link, at: 1)))
    #expect(sessions.session(cookie, at: 2)?.rights == Rights(control: ["ev"]) && cookie.cookie != link && cookie.key != cookie.cookie)
    #expect(sessions.session(.random(), at: 2) == nil && sessions.session(nil, at: 2) == nil)
    // Another server of the host receives the cookie, and a page on another port may know a key of its own.
    #expect(sessions.session(SessionSecret(cookie: cookie.cookie, key: ""), at: 2) == nil)
    #expect(sessions.session(SessionSecret(cookie: "", key: cookie.key), at: 2) == nil)
  }

  @Test func `a used link is rejected, and a new one is printed`() throws {
    let sessions = sessions()
    let link = try #require(printed.tokens.first)
    #expect(accepted(sessions.signIn(link, at: 1)) != nil && printed.tokens.count == 1)
    #expect(isRejected(sessions.signIn(link, at: 2)) && printed.tokens.count == 2)
    // The old link prints no further one while the new one is valid.
    #expect(isRejected(sessions.signIn(link, at: 3)) && printed.tokens.count == 2)
    #expect(accepted(sessions.signIn(printed.tokens[1], at: 4)) != nil)
    #expect(isRejected(sessions.signIn(link, at: 5)) && printed.tokens.count == 3)
  }

  @Test func `a link expires after ten minutes`() throws {
    let sessions = sessions()
    let link = try #require(printed.tokens.first)
    #expect(isRejected(sessions.signIn(link, at: 10 * Self.minute)) && printed.tokens.count == 2)
    #expect(accepted(sessions.signIn(printed.tokens[1], at: 20 * Self.minute - 1)) != nil)
  }

  @Test func `an unknown token prints no link`() {
    let sessions = sessions()
    #expect(isRejected(sessions.signIn("x", at: 11 * Self.minute)) && printed.tokens.count == 1)
  }

  @Test func `tokens of files sign in any number of browsers, each with its rights`() throws {
    let kiosk = Sessions.NamedToken(name: "kiosk", token: token("kiosk-kiosk-kiosk-kiosk"), rights: Rights(isKiosk: true))
    let phone = Sessions.NamedToken(name: "phone", token: token("phone-phone-phone-phone"), rights: Rights(control: ["mirror"]))
    let sessions = sessions([kiosk, phone], link: nil)
    #expect(printed.tokens.isEmpty)
    for named in [kiosk, phone, kiosk] {
      let cookie = try #require(accepted(sessions.signIn(named.token.text, at: 1)))
      #expect(sessions.session(cookie, at: 1)?.rights == named.rights)
    }
  }

  @Test func `after 20 wrong tokens further ones are reported as such, and a valid one is accepted`() {
    let sessions = sessions()
    for _ in 0..<20 { #expect(isRejected(sessions.signIn("x", at: 0))) }
    #expect(isLimited(sessions.signIn("x", at: 0)))
    #expect(accepted(sessions.signIn(printed.tokens[0], at: 0)) != nil)
    #expect(isRejected(sessions.signIn("x", at: 4 * .second)) && isLimited(sessions.signIn("x", at: 4 * .second)))
  }

  @Test func `a session ends after 30 days, and closes its WebSockets`() throws {
    let sessions = sessions()
    let cookie = try #require(accepted(sessions.signIn(printed.tokens[0], at: 0)))
    var reasons: [String] = []
    try #require(sessions.session(cookie, at: 0)).add(printed) { reasons.append($0) }
    let end = Session.lifetime * .second
    #expect(sessions.session(cookie, at: end - 1) != nil && reasons.isEmpty)
    #expect(sessions.session(cookie, at: end) == nil && reasons == ["the session has expired"])
  }

  @Test func `an open WebSocket ends with its session, though nothing presents the cookie`() throws {
    let sessions = sessions()
    let cookie = try #require(accepted(sessions.signIn(printed.tokens[0], at: 0)))
    var reasons: [String] = []
    try #require(sessions.session(cookie, at: 0)).add(printed) { reasons.append($0) }
    sessions.endExpired(at: Session.lifetime * .second - 1)
    #expect(reasons.isEmpty)
    sessions.endExpired(at: Session.lifetime * .second)
    #expect(reasons == ["the session has expired"])
  }

  @Test func `signing out ends the session and closes its WebSockets`() throws {
    let sessions = sessions()
    let cookie = try #require(accepted(sessions.signIn(printed.tokens[0], at: 0)))
    var reasons: [String] = []
    try #require(sessions.session(cookie, at: 0)).add(printed) { reasons.append($0) }
    sessions.end(cookie, "signed out")
    #expect(sessions.session(cookie, at: 0) == nil && reasons == ["signed out"])
  }

  @Test func `the oldest session ends when there are too many`() throws {
    let kiosk = Sessions.NamedToken(name: "kiosk", token: token("kiosk-kiosk-kiosk-kiosk"), rights: Rights())
    let sessions = sessions([kiosk], link: nil)
    let cookies = try (0..<65).map { try #require(accepted(sessions.signIn(kiosk.token.text, at: Int64($0)))) }
    #expect(sessions.session(cookies[0], at: 100) == nil && sessions.session(cookies[1], at: 100) != nil)
    #expect(sessions.session(cookies[64], at: 100) != nil)
  }

  @Test func `a browser that signs in again replaces its session`() throws {
    let kiosk = Sessions.NamedToken(name: "kiosk", token: token("kiosk-kiosk-kiosk-kiosk"), rights: Rights())
    let sessions = sessions([kiosk], link: Rights())
    let phone = try #require(accepted(sessions.signIn(printed.tokens[0], at: 0)))
    var cookie = try #require(accepted(sessions.signIn(kiosk.token.text, at: 0)))
    var reasons: [String] = []
    try #require(sessions.session(cookie, at: 0)).add(printed) { reasons.append($0) }
    #expect(isRejected(sessions.signIn("wrong", replacing: cookie, at: 0)) && sessions.session(cookie, at: 0) != nil)
    for _ in 0..<100 {
      let next = try #require(accepted(sessions.signIn(kiosk.token.text, replacing: cookie, at: 1)))
      #expect(sessions.session(cookie, at: 1) == nil && sessions.session(next, at: 1) != nil)
      cookie = next
    }
    #expect(reasons == ["this browser has signed in again"] && sessions.session(phone, at: 1) != nil)
  }

  @Test func `too many sign-ins end sessions of the same token, and otherwise those without WebSockets`() throws {
    let named = ["kiosk", "phone", "other"].map { name in
      Sessions.NamedToken(name: name, token: token("\(name)-\(name)-\(name)-\(name)-\(name)"), rights: Rights())
    }
    let sessions = sessions(named, link: nil)
    func add(_ index: Int) throws -> SessionSecret { try #require(accepted(sessions.signIn(named[index].token.text, at: 0))) }
    let phones = try [add(1), add(1)]
    let kiosks = try (0..<100).map { _ in try add(0) }
    #expect(phones.allSatisfy { sessions.session($0, at: 0) != nil })
    #expect(kiosks.filter { sessions.session($0, at: 0) != nil } == kiosks.suffix(62))
    // The first session of all has a WebSocket, the second has none.
    try #require(sessions.session(phones[0], at: 0)).add(printed) { _ in }
    let other = try add(2)
    #expect(sessions.session(phones[0], at: 0) != nil && sessions.session(phones[1], at: 0) == nil)
    #expect(sessions.session(other, at: 0) != nil)
  }

  // MARK: Restarts

  private let stored = Stored()

  /// The sessions of a service that has just started.
  private func service(_ tokens: [String: Rights], at now: Instant) -> Sessions {
    let named = tokens.map { Sessions.NamedToken(name: $0, token: token("\($0)-0123456789abcdef0123456789"), rights: $1) }
    return Sessions(named, linkRights: nil, restored: stored.records, at: now, show: { _ in }, store: { [stored] in stored.records = $0 })
  }

  private func signIn(_ sessions: Sessions, _ name: String = "phone", at now: Instant) throws -> SessionSecret {
    try #require(accepted(sessions.signIn("\(name)-0123456789abcdef0123456789", at: now)))
  }

  @Test func `a session outlasts restarts, but only observes until the browser signs in again`() throws {
    let cookie = try signIn(service(["phone": Rights(control: ["ev"])], at: 0), at: 1)
    let text = SessionFile.text(stored.records)
    #expect(![cookie.cookie, cookie.key, "phone-"].contains { text.contains($0) })
    let restarted = service(["phone": Rights(control: ["ev"], isKiosk: true)], at: 2)
    #expect(restarted.session(cookie, at: 3)?.rights == Rights(isKiosk: true) && restarted.session(cookie, at: 3)?.withheld == ["ev"])
    let other = try signIn(restarted, at: 3)
    #expect(restarted.session(other, at: 3)?.rights == Rights(control: ["ev"], isKiosk: true))
    #expect(restarted.session(other, at: 3)?.withheld == [])
    restarted.end(other, "signed out")
    #expect(service(["phone": Rights()], at: 4).session(cookie, at: 5)?.withheld == [])
    let end = 1 + Session.lifetime * .second
    #expect(service(["phone": Rights()], at: 6).session(cookie, at: end - 1) != nil)
    #expect(service(["phone": Rights()], at: 6).session(cookie, at: end) == nil && stored.records.isEmpty)
  }

  @Test func `a session ends when its token is removed or replaced`() throws {
    let cookie = try signIn(service(["phone": Rights(), "kiosk": Rights()], at: 0), at: 1)
    #expect(service(["kiosk": Rights()], at: 2).session(cookie, at: 3) == nil)
    // It does not come back with the token.
    #expect(service(["phone": Rights()], at: 4).session(cookie, at: 5) == nil && stored.records.isEmpty)
  }

  @Test func `sessions that have ended, and those of a link or of another boot, are not restored`() throws {
    let first = service(["phone": Rights()], at: 0)
    let cookies = try (1...3).map { try signIn(first, at: $0) }
    first.end(cookies[1], "signed out")
    first.end(.random(), "signed out")
    let second = service(["phone": Rights()], at: 4)
    #expect(cookies.map { second.session($0, at: 5) != nil } == [true, false, true])
    let other = SessionSecret.random()
    let late = SessionRecord(secret: other.hash, token: stored.records[0].token, expiry: 7 + Session.lifetime * .second)
    stored.records.append(late)
    #expect(service(["phone": Rights()], at: 6).session(other, at: 6) == nil)
    #expect(service(["phone": Rights()], at: Session.lifetime * .second + 3).session(cookies[2], at: 0) == nil)
    let link = Sessions([], linkRights: Rights(), at: 0, show: { [printed] in printed.tokens.append($0.text) }) { [stored] in
      stored.records = $0
    }
    #expect(accepted(link.signIn(printed.tokens[0], at: 1)) != nil && stored.records.isEmpty)
  }

  // MARK: Limits

  @Test func `a session makes 100 calls at once, and 50 per second`() {
    let session = Session(Rights(), at: 0)
    for _ in 0..<100 { #expect(session.takeCall(at: 0) == nil) }
    let delay = session.takeCall(at: 0)
    #expect((19...21).contains((delay ?? 0) / .millisecond))
    #expect(session.takeCall(at: delay ?? 0) == nil && session.takeCall(at: delay ?? 0) != nil)
    #expect((0..<50).allSatisfy { session.takeCall(at: 2 * .second + $0) == nil })
  }

  @Test func `a clock that does not advance gives nothing`() {
    var limit = RateLimit(burst: 1, perSecond: 1, at: 10)
    #expect(limit.take(at: 10) == nil && limit.take(at: 5) != nil && limit.take(at: 10) != nil && limit.take(at: 2 * .second) == nil)
  }
}
