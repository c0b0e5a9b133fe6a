// The requests to the toy's web server, in both dialects, and error messages for their responses. Requests that fetch the next fact or
// mark it as played are never sent, because they would change what the toy plays. `GET /User` is never sent either: it returns the e-mail
// addresses of all users without authentication.
// Source: neils95/Trivio, Server/Trivio/Controllers, the Android app, SoftwareREADME.md (documented).

/// One request.
enum ToyCall: Sendable {
  case register(name: String, email: String, password: String)
  case login(email: String, password: String)
  case history(ToyUser)
  case vote(ToyPendingVote, token: String?)

  /// The timeout of a request. It is long, because an idle server needs time to start, but shorter than the 15 s that a client waits.
  private static let timeout: Nanoseconds = 14 * .second

  func request(_ settings: ToySettings) -> HTTPRequest {
    let isDocumented = settings.dialect == .documented
    // In the documentation, the paths of registration and login are swapped.
    switch self {
    case .register(let name, let email, let password):
      let json: JSON =
        isDocumented
        ? ["username": .string(name), "email": .string(email), "password": .string(password)]
        : ["name": .string(name), "email": .string(email), "password": .string(password)]
      return request("POST", isDocumented ? "/User/Login" : "/User/Register", json, nil, settings)
    case .login(let email, let password):
      let json: JSON = ["email": .string(email), "password": .string(password)]
      return request("POST", isDocumented ? "/User/Register" : "/User/Login", json, nil, settings)
    case .history(let user):
      return request("GET", "/User/History/\(user.id)", nil, user.token, settings, maxLength: ToyHistoryReader.maxLength)
    case .vote(let vote, let token):
      let json: JSON = ["userVote": .int(vote.vote.rawValue), "userId": .int(vote.user), "triviaId": .int(vote.fact)]
      return request(isDocumented ? "POST" : "PUT", "/Trivia/Vote/\(vote.fact)", json, token, settings)
    }
  }

  private func request(
    _ method: String, _ path: String, _ json: JSON?, _ token: String?, _ settings: ToySettings, maxLength: Int = 1 << 20
  ) -> HTTPRequest {
    var headers = ["Accept": "application/json"]
    if json != nil { headers["Content-Type"] = "application/json; charset=utf-8" }
    if let token { headers["Authorization"] = "Bearer \(token)" }
    return HTTPRequest(
      method, settings.server + path, headers: headers, body: json.map { Array($0.text.utf8) } ?? [], timeout: Self.timeout,
      proxy: settings.proxy, maxLength: maxLength)
  }
}

/// Why a request failed.
struct ToyError: Error, Equatable {
  /// Whether the failure is temporary: a later attempt may succeed.
  var isTransient: Bool
  var code: ErrorCode
  var message: String
  /// Whether the server failed on this particular request (status 500); other requests may succeed.
  var isPerRequest = false

  /// A temporary failure.
  static func transient(_ message: String) -> ToyError { ToyError(isTransient: true, code: .noAnswer, message: message) }
  /// A permanent failure.
  static func final(_ code: ErrorCode, _ message: String) -> ToyError { ToyError(isTransient: false, code: code, message: message) }
}

/// The result of a vote.
enum ToyVoteResult: Equatable {
  case counted(ToyFact)
  case unchanged
}

enum ToyAnswer {
  private static let sessionExpired = "the session has expired: vehiclectl toy login EMAIL"

  /// Parses the response to a login or registration.
  static func user(_ response: HTTPResponse, isNew: Bool) throws(ToyError) -> ToyUser {
    switch response {
    case .answered(404, _, let body) where body.isEmpty && !isNew: throw .final(.wrongPassword, "wrong e-mail or password")
    case .answered(401, _, _) where !isNew: throw .final(.wrongPassword, "wrong e-mail or password")
    case .answered(400, let type, let body) where isFromServer(type, body):
      let reason = message(body) ?? (isNew ? "check name and e-mail" : "check the e-mail")
      throw .final(.rejected, isNew ? "registration rejected: \(reason)" : "login rejected: \(reason)")
    default: break
    }
    guard let user = ToyUser(try object(response)) else {
      throw .transient("no user number in the server's response: check the key `server`")
    }
    return user
  }

  /// The body of a history that is too long to be parsed in one step; nil for other responses.
  static func longHistory(_ response: HTTPResponse) -> [UInt8]? {
    guard case .answered(200, let type, let body) = response, body.count > ToyHistoryReader.maxAtOnce, isFromServer(type, body) else {
      return nil
    }
    return body
  }

  static func history(_ response: HTTPResponse, of user: Int) throws(ToyError) -> ToyHistory {
    switch response {
    case .answered(401, _, _): throw .final(.needsLogin, sessionExpired)
    case .answered(400, let type, let body) where isFromServer(type, body):
      let reason = message(body).map { " (\($0))" } ?? ""
      throw .final(
        .noAccount,
        "user \(user) no longer exists on the server\(reason): register again with vehiclectl toy register NAME EMAIL, then run "
          + "vehiclectl toy wifi, because the toy still plays for user \(user)")
    default: break
    }
    guard let history = ToyHistory(try document(response), user: user) else {
      throw .transient("no list of facts in the server's response: check the key `server`")
    }
    return history
  }

  static func voteResult(_ response: HTTPResponse, _ vote: ToyPendingVote) throws(ToyError) -> ToyVoteResult {
    switch response {
    case .answered(204, _, _): return .unchanged
    case .answered(401, _, _): throw ToyError(isTransient: true, code: .needsLogin, message: sessionExpired)
    case .answered(400, let type, let body) where isFromServer(type, body):
      let reason = message(body).map { " (\($0))" } ?? ""
      throw .final(
        .notPlayed,
        "vote for fact \(vote.fact) rejected: the toy has not played it yet, or the account no longer exists\(reason)")
    // Only a rejection by the server itself is final; an error page of a proxy is not.
    case .answered(let status, let type?, let body) where [403, 404, 409, 410, 422].contains(status) && type.hasSuffix("json"):
      throw .final(.rejected, "vote for fact \(vote.fact) rejected (\(status)\(message(body).map { ": \($0)" } ?? ""))")
    default: break
    }
    guard let fact = ToyFact(try object(response)), fact.id == vote.fact else {
      throw .transient("unexpected fact in the server's response to a vote: check the key `server`")
    }
    return .counted(fact)
  }

  /// Whether the response comes from the server itself, not from a proxy in front of it: proxies return web pages.
  private static func isFromServer(_ type: String?, _ body: [UInt8]) -> Bool { body.isEmpty || type.map { $0.hasSuffix("json") } ?? true }

  private static func object(_ response: HTTPResponse) throws(ToyError) -> JSONNode {
    let node = try document(response)
    guard node.kind == .object else { throw .transient("the server returned JSON that is not an object: check the key `server`") }
    return node
  }

  /// The JSON of a successful response.
  private static func document(_ response: HTTPResponse) throws(ToyError) -> JSONNode {
    switch response {
    case .failed(let message): throw .transient(message)
    case .answered(let status, _, _) where (300..<400).contains(status):
      throw .transient("the server redirects (\(status)), which is not supported: check the key `server`")
    case .answered(500, _, _):
      throw ToyError(isTransient: true, code: .noAnswer, message: "the server failed (500): try again later", isPerRequest: true)
    case .answered(let status, _, _) where status >= 500: throw .transient("the server failed (\(status)): try again later")
    case .answered(_, let type, _) where type?.hasSuffix("html") == true || type == "application/xhtml+xml":
      throw .transient("the server returned a web page: check the key `server`, and whether the network requires a login")
    case .answered(200, _, let body), .answered(201, _, let body):
      guard let node = JSONNode(untrusted: body) else { throw .transient("the server returned invalid JSON: check the key `server`") }
      return node
    case .answered(404, _, _): throw .transient("not found (404): check the key `server`")
    case .answered(let status, _, let body) where (400..<500).contains(status):
      throw .transient("request rejected (\(status)): \(message(body) ?? "check the key `server`")")
    case .answered(let status, _, _): throw .transient("unexpected response (\(status)): check the key `server`")
    }
  }

  /// The message in `{"message": "…"}` or `{"Message": "…"}`.
  private static func message(_ body: [UInt8]) -> String? {
    guard let root = JSONNode(untrusted: body), root.kind == .object else { return nil }
    let text = (root["message"] ?? root["Message"])?.text.map { visible($0, limit: 200) }
    guard var text, text.contains(where: { $0 != " " }) else { return nil }
    while text.last == " " { text.removeLast() }
    return text
  }
}
