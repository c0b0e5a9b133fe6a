// Users, facts and votes, as in the server's responses and as stored. Parsing is lenient: numbers can be strings, keys can be missing, and
// an older server uses other keys.
// Source: neils95/Trivio, Server/Trivio/Models and Controllers.

/// A user who is logged in.
struct ToyUser: Sendable, Equatable {
  var id: Int
  var name: String?
  var email: String?
  /// The token that a replacement server requires with every request.
  var token: String?
  /// The server that the user belongs to; nil in a response, which means the server that sent it.
  var server: String?

  /// Parses the server's user object, or a stored one; nil if it has no id.
  init?(_ node: JSONNode) {
    guard let id = node["id"].flatMap(Self.number), id > 0 else { return nil }
    self.id = id
    name = node["name"]?.text.map { visible($0, limit: 100) }
    email = node["email"]?.text.map { visible($0, limit: 100) }
    server = node["server"]?.text
    token = node["token"]?.text.flatMap { $0.utf8.count <= 200 && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } ? $0 : nil }
  }

  var bytes: [UInt8] {
    Array(
      JSON.members([
        "id": .int(id), "name": name.map(JSON.string), "email": email.map(JSON.string), "token": token.map(JSON.string),
        "server": server.map(JSON.string),
      ]).text.utf8)
  }

  static func number(_ node: JSONNode) -> Int? { node.int ?? node.text.flatMap { Int($0) } }
}

/// A user's vote on a fact.
enum ToyVote: Int, Sendable {
  case down = -1
  case none = 0
  case up = 1

  /// Parses user input.
  init?(_ name: String) {
    switch name {
    case "up": self = .up
    case "down": self = .down
    case "none", "clear": self = .none
    default: return nil
    }
  }

  var name: String {
    switch self {
    case .up: "up"
    case .down: "down"
    case .none: "none"
    }
  }
}

/// A fact that the toy has played.
struct ToyFact: Sendable, Equatable {
  var id: Int
  var text: String
  var up: Int
  var down: Int
  var vote: ToyVote

  private static let maxLength = 1000

  /// Parses one row of a history, a response to a vote, or a stored fact; nil if it has no id.
  init?(_ node: JSONNode) {
    let trivia = node["trivia"] ?? node
    guard let id = (trivia["id"] ?? trivia["triviaId"]).flatMap(ToyUser.number), id > 0 else { return nil }
    self.id = id
    text = (trivia["text"] ?? trivia["triviaText"])?.text.map { visible($0, limit: Self.maxLength) } ?? "(no text from the server)"
    up = max(0, trivia["upvotes"].flatMap(ToyUser.number) ?? 0)
    down = max(0, trivia["downvotes"].flatMap(ToyUser.number) ?? 0)
    vote = (node["userVote"] ?? node["userAction"]).flatMap(ToyUser.number).flatMap(ToyVote.init) ?? .none
  }

  /// An upper bound for the length of the fact's JSON, in bytes.
  var maxJSONLength: Int { text.utf8.reduce(120) { $0 + ($1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 2 : 1) } }

  /// The fact in the server's format.
  var json: JSON {
    ["trivia": ["id": .int(id), "text": .string(text), "upvotes": .int(up), "downvotes": .int(down)], "userVote": .int(vote.rawValue)]
  }

  static let columns = ["id", "fact", "up", "down", "vote", "pending"]

  /// One row of a report. `isPending`: the vote has not been sent yet.
  func row(isPending: Bool) -> [String] { [String(id), text, String(up), String(down), vote.name, isPending ? "yes" : ""] }

  /// The user's vote and the vote counts, as reported after a vote.
  var summary: String { "fact \(id): \(vote.name) (\(up) up, \(down) down)" }
}

/// All facts that a user's toy has played, as of one response.
struct ToyHistory: Sendable, Equatable {
  var user: Int
  var facts: [ToyFact]
  /// The number of all facts. If the history is long, `facts` contains only the latest ones.
  var total: Int
  /// When the server sent the facts, in microseconds since the Unix epoch; nil if the time is not known yet.
  var time: Int64?

  /// The maximum size of stored facts, in bytes.
  private static let maxStoredSize = 768 << 10

  init(user: Int, facts: [ToyFact]) { (self.user, self.facts, total) = (user, facts, facts.count) }

  /// Parses a response; nil if it is invalid. Of duplicate facts, the last one is used.
  init?(_ node: JSONNode, user: Int) {
    guard let rows = node["triviaHistory"] ?? (node.kind == .array ? node : nil), rows.kind == .array else { return nil }
    var list = ToyFactList()
    for fact in rows.elements.compactMap(ToyFact.init) { list.add(fact) }
    self.init(user: user, facts: list.all)
  }

  /// The part of the facts that is stored: the latest ones.
  static func storedPart(of facts: [ToyFact]) -> ArraySlice<ToyFact> {
    var (start, length) = (facts.endIndex, 0)
    while start > 0 {
      length += facts[start - 1].maxJSONLength
      if length > maxStoredSize { break }
      start -= 1
    }
    return facts[start...]
  }

  /// This history with only the facts that are stored.
  var bounded: ToyHistory {
    var bounded = self
    bounded.facts = Array(Self.storedPart(of: facts))
    return bounded
  }

  /// Parses a stored history.
  init?(stored bytes: [UInt8]) {
    guard let root = JSONNode(untrusted: bytes), let user = root["user"]?.int, let time = root["time"]?.int else { return nil }
    self.init(root, user: user)
    self.time = Int64(time)
    total = max(facts.count, root["total"]?.int ?? 0)
  }

  var bytes: [UInt8] {
    Array(
      JSON.members([
        "user": .int(user), "time": time.map { .int(Int($0)) }, "total": total > facts.count ? .int(total) : nil,
        "triviaHistory": .array(facts.map(\.json)),
      ]).text.utf8)
  }
}

/// A vote that has not been sent yet.
struct ToyPendingVote: Sendable, Equatable {
  /// The server that the user belongs to.
  var server: String
  var user: Int
  var fact: Int
  var vote: ToyVote

  init(server: String, user: Int, fact: Int, vote: ToyVote) { (self.server, self.user, self.fact, self.vote) = (server, user, fact, vote) }

  /// Parses a stored vote.
  init?(_ node: JSONNode) {
    guard let server = node["server"]?.text, let user = node["user"]?.int, let fact = node["fact"]?.int,
      let vote = node["vote"]?.int.flatMap(ToyVote.init)
    else { return nil }
    self.init(server: server, user: user, fact: fact, vote: vote)
  }

  var json: JSON { ["server": .string(server), "user": .int(user), "fact": .int(fact), "vote": .int(vote.rawValue)] }
}
