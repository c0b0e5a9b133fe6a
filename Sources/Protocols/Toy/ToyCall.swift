// The calls to the toy's web server, in both dialects, and their answers in a person's words. A call that takes a fact or marks one
// as heard is none of ours: those are the toy's own, and asking again would change what it plays. `GET /User`, which lists everybody
// with their e-mail to anybody, is never asked.
// Facts: protocols of the Trivia toy, §B, §D.

/// One call.
enum ToyCall: Sendable {
  case register(name: String, email: String, password: String)
  case login(email: String, password: String)
  case history(ToyUser)
  case vote(ToyPendingVote, token: String?)

  /// A server that slept takes its time to answer first; a caller gives up after 15 s.
  private static let timeout: Nanoseconds = 14 * .second

  func request(_ settings: ToySettings) -> HTTPRequest {
    let isDocumented = settings.dialect == .documented
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

/// Why a call came to nothing.
struct ToyTrouble: Error, Equatable {
  /// The server did not really answer: another time it may.
  var isPassing: Bool
  /// A short stable word for programs.
  var code: String
  var words: String
  /// The server failed on this call; others may go well.
  var isOfCall = false

  /// Another time it may work.
  static func passing(_ words: String) -> ToyTrouble { ToyTrouble(isPassing: true, code: "no-answer", words: words) }
  /// It will never work so.
  static func final(_ code: String, _ words: String) -> ToyTrouble { ToyTrouble(isPassing: false, code: code, words: words) }
}

/// What a vote did.
enum ToyVoted: Equatable {
  case counted(ToyFact)
  case wasSo
}

enum ToyAnswer {
  private static let wantsLogin = "the server wants you to log in again: vehiclectl toy login EMAIL"

  /// Who has logged in, or has just been made.
  static func user(_ response: HTTPResponse, isNew: Bool) throws(ToyTrouble) -> ToyUser {
    switch response {
    case .answered(404, _, let body) where body.isEmpty && !isNew: throw .final("wrong-password", "wrong e-mail or password")
    case .answered(401, _, _) where !isNew: throw .final("wrong-password", "wrong e-mail or password")
    case .answered(400, let type, let body) where isVerdict(type, body):
      let words = message(body) ?? (isNew ? "check name and e-mail" : "check the e-mail")
      throw .final("refused", isNew ? "the server does not make this account: \(words)" : "the server refuses the login: \(words)")
    default: break
    }
    guard let user = ToyUser(try object(response)) else {
      throw .passing("the server's answer does not tell a user's number: check server")
    }
    return user
  }

  /// The body of a history that is too long to be read at once.
  static func longHistory(_ response: HTTPResponse) -> [UInt8]? {
    guard case .answered(200, let type, let body) = response, body.count > ToyHistoryReader.maxAtOnce, isVerdict(type, body) else {
      return nil
    }
    return body
  }

  static func history(_ response: HTTPResponse, of user: Int) throws(ToyTrouble) -> ToyHistory {
    switch response {
    case .answered(401, _, _): throw .final("needs-login", wantsLogin)
    case .answered(400, let type, let body) where isVerdict(type, body):
      let words = message(body).map { " (\($0))" } ?? ""
      throw .final(
        "no-account",
        "the server has no user \(user) any more\(words): register again with vehiclectl toy register NAME EMAIL, then run vehiclectl toy "
          + "wifi, for the toy still plays for user \(user)")
    default: break
    }
    guard let history = ToyHistory(try document(response), user: user) else {
      throw .passing("the server's answer holds no list of facts: check server")
    }
    return history
  }

  static func voted(_ response: HTTPResponse, _ vote: ToyPendingVote) throws(ToyTrouble) -> ToyVoted {
    switch response {
    case .answered(204, _, _): return .wasSo
    case .answered(401, _, _): throw ToyTrouble(isPassing: true, code: "needs-login", words: wantsLogin)
    case .answered(400, let type, let body) where isVerdict(type, body):
      let words = message(body).map { " (\($0))" } ?? ""
      throw .final(
        "not-heard",
        "the server takes no vote for fact \(vote.fact): the toy has not played it yet, or the server has forgotten the account\(words)")
    // What the server's program refuses it refuses for ever; a page of whatever stands before it says nothing of the vote.
    case .answered(let status, let type?, let body) where [403, 404, 409, 410, 422].contains(status) && type.hasSuffix("json"):
      throw .final("refused", "the server refuses the vote for fact \(vote.fact) (\(status)\(message(body).map { ": \($0)" } ?? ""))")
    default: break
    }
    guard let fact = ToyFact(try object(response)), fact.id == vote.fact else {
      throw .passing("the server's answer to a vote does not hold that fact: check server")
    }
    return .counted(fact)
  }

  /// Whether the server's program says this, and not something that stands before it.
  private static func isVerdict(_ type: String?, _ body: [UInt8]) -> Bool { body.isEmpty || type.map { $0.hasSuffix("json") } ?? true }

  private static func object(_ response: HTTPResponse) throws(ToyTrouble) -> JSONNode {
    let node = try document(response)
    guard node.kind == .object else { throw .passing("the server answers with what is no object: check server") }
    return node
  }

  /// The JSON of an answer that went well.
  private static func document(_ response: HTTPResponse) throws(ToyTrouble) -> JSONNode {
    switch response {
    case .failed(let words): throw .passing(words)
    case .answered(let status, _, _) where (300..<400).contains(status):
      throw .passing("the server redirects (\(status)), which is not followed: check server")
    case .answered(500, _, _):
      throw ToyTrouble(isPassing: true, code: "no-answer", words: "the server is in trouble (500): try again later", isOfCall: true)
    case .answered(let status, _, _) where status >= 500: throw .passing("the server is in trouble (\(status)): try again later")
    case .answered(_, let type, _) where type?.hasSuffix("html") == true || type == "application/xhtml+xml":
      throw .passing("the server answers with a web page: check server, and whether the network wants a login")
    case .answered(200, _, let body), .answered(201, _, let body):
      guard let node = JSONNode(foreign: body) else { throw .passing("the server answers with what is no JSON: check server") }
      return node
    case .answered(404, _, _): throw .passing("the server knows no such call (404): check server")
    case .answered(let status, _, let body) where (400..<500).contains(status):
      throw .passing("the server refuses (\(status)): \(message(body) ?? "check server")")
    case .answered(let status, _, _): throw .passing("the server answers \(status), which nobody asked for: check server")
    }
  }

  /// `{"message": "…"}`, whatever the case of the key.
  private static func message(_ body: [UInt8]) -> String? {
    guard let root = JSONNode(foreign: body), root.kind == .object else { return nil }
    let text = (root["message"] ?? root["Message"])?.text.map { visible($0, limit: 200) }
    guard var text, text.contains(where: { $0 != " " }) else { return nil }
    while text.last == " " { text.removeLast() }
    return text
  }
}
