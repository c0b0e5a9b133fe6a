// The calls of the trivia server and their authorization. The calls for plays and votes are in TriviaPlaying.
// Source: the server of neils95/Trivio. Tokens are an extension.

import Protocols

/// The service, shared by all connections to the server.
public struct TriviaService: Sendable {
  /// The maximum number of tokens per user. The oldest one expires on a new login.
  public static let maxTokens = 16
  private static let maxNameLength = 100

  let store: any TriviaStore
  private let requiresTokens: Bool
  private let rounds: Int
  private let random: @Sendable (_ count: Int) -> [UInt8]

  /// Creates a service with this store. `random` returns `count` cryptographically secure bytes; `rounds` is that of
  /// `TriviaPassword`.
  public init(
    _ store: any TriviaStore, requiresTokens: Bool = false, rounds: Int = TriviaPassword.defaultRounds,
    random: @escaping @Sendable (_ count: Int) -> [UInt8]
  ) {
    (self.store, self.requiresTokens, self.rounds, self.random) = (store, requiresTokens, rounds, random)
  }

  /// Executes a request. `internalError` describes an error of the server itself, or is nil if there is none.
  func answer(_ request: ReceivedHTTPRequest, _ variant: TriviaReplyVariant = TriviaReplyVariant()) -> (
    reply: HTTPReply, internalError: String?
  ) {
    do {
      return (try call(request, variant), nil)
    } catch let refusal as TriviaErrorReply {
      return (refusal.reply, nil)
    } catch {
      return (TriviaReply.error, (error as? ValueError)?.description ?? "\(error)")
    }
  }

  private func call(_ request: ReceivedHTTPRequest, _ variant: TriviaReplyVariant) throws -> HTTPReply {
    let parts = request.path.split(separator: "/").map(String.init)
    func require(_ method: String, _ body: () throws -> HTTPReply) throws -> HTTPReply {
      if request.method == method { return try body() }
      var reply = TriviaReply.message(405, "Use \(method) for this address.")
      reply.fields["Allow"] = method
      return reply
    }
    switch (parts.first?.lowercased(), parts.dropFirst().first?.lowercased(), parts.count) {
    case ("user", "register", 2): return try require("POST") { try register(request, variant) }
    case ("user", "login", 2): return try require("POST") { try logIn(request, variant) }
    case ("user", "history", 3): return try require("GET") { try history(parts[2], request, variant) }
    case ("user", "history", 4): return try require("GET") { try countPlays(parts[2], parts[3]) }
    case ("trivia", "vote", 3): return try require("PUT") { try vote(parts[2], request, variant) }
    case ("trivia", _, 2): return try require("GET") { try download(parts[1], variant) }
    // The original's `GET /User` discloses all e-mail addresses. No app or toy uses it, so it is not implemented.
    default: return TriviaReply.message(404, "There is nothing at this address.")
    }
  }

  // MARK: Accounts

  private func register(_ request: ReceivedHTTPRequest, _ variant: TriviaReplyVariant) throws -> HTTPReply {
    let body = try TriviaBody(request.body)
    let (name, email, password) = (try body.text("name"), try body.text("email") ?? "", try body.text("password") ?? "")
    guard TriviaAddress.isAccepted(email), !password.isEmpty, (name ?? "").utf8.count <= Self.maxNameLength, try store.account(email) == nil
    else { throw TriviaErrorReply(400, "Account with email \(email) already exists or invalid email") }
    let user = try store.add(name: name, email: email, password: TriviaPassword(password, salt: salt, rounds: rounds))
    var reply = try loginReply(user, status: 201, variant)
    reply.fields["Location"] = "\(Self.origin(request))/User/Register?id=\(user.id)"
    return reply
  }

  private func logIn(_ request: ReceivedHTTPRequest, _ variant: TriviaReplyVariant) throws -> HTTPReply {
    let body = try TriviaBody(request.body)
    let (email, password) = (try body.text("email") ?? "", try body.text("password") ?? "")
    guard let account = try store.account(email) else {
      // This takes as long as a comparison, so that the time does not reveal whether the account exists.
      _ = try TriviaPassword(password, salt: salt, rounds: rounds)
      return TriviaReply.notFound
    }
    return account.password.matches(password) ? try loginReply(account.user, status: 200, variant) : TriviaReply.notFound
  }

  private var salt: [UInt8] { random(TriviaPassword.saltSize) }

  private func loginReply(_ user: TriviaUser, status: Int, _ variant: TriviaReplyVariant) throws -> HTTPReply {
    var token: String?
    if requiresTokens {
      let text = TriviaToken.text(random(TriviaToken.size))
      try store.add(token: TriviaToken.hash(text), of: user.id)
      token = text
    }
    var reply = HTTPReply(status, TriviaReply.user(user, token: token, variant).text)
    reply.isSecret = token != nil
    return reply
  }

  /// Throws unless the request has a token of this user, or tokens are not required.
  func authorize(_ request: ReceivedHTTPRequest, as user: Int) throws {
    guard requiresTokens else { return }
    let words = (request.fields["authorization"] ?? "").split(separator: " ")
    if words.count == 2, words[0].lowercased() == "bearer", try store.owner(of: TriviaToken.hash(String(words[1]))) == user { return }
    var reply = TriviaReply.message(401, "The token of this user is missing or no longer valid: log in again.")
    reply.fields["WWW-Authenticate"] = "Bearer"
    throw TriviaErrorReply(reply)
  }

  /// The origin (scheme and host) from the Host field; empty if the field is not printable.
  private static func origin(_ request: ReceivedHTTPRequest) -> String {
    let host = request.fields["host"] ?? ""
    let isPrintable = host.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x3A, 0x41...0x5B, 0x5D, 0x61...0x7A, 0x2D, 0x2E: true  // digits, letters, : [ ] - .
      default: false
      }
    }
    return isPrintable && !host.isEmpty ? "http://\(host)" : ""
  }
}
