// Users, facts and votes as the toy's server speaks of them, and as they are kept on the disk. Read leniently: numbers may come as
// texts, an older server calls things otherwise, keys may be missing.
// Facts: protocols of the Trivia toy, §B.

/// Somebody who is logged in.
struct ToyUser: Sendable, Equatable {
  var id: Int
  var name: String?
  var email: String?
  /// What a stand-in server wants to see with every call.
  var token: String?
  /// Whose user it is; nil: that of the server that has just said so.
  var server: String?

  /// The server's user object, or a kept one; nil where it has no id.
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

  static func number(_ node: JSONNode) -> Int? { node.whole ?? node.text.flatMap { Int($0) } }
}

/// A person's opinion of a fact.
enum ToyVote: Int, Sendable {
  case down = -1
  case none = 0
  case up = 1

  /// Reads what a person writes.
  init?(_ word: String) {
    switch word {
    case "up": self = .up
    case "down": self = .down
    case "none", "clear": self = .none
    default: return nil
    }
  }

  var word: String {
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

  private static let longest = 1000

  /// One row of a history, a vote's answer, or a kept one; nil where it has no id.
  init?(_ node: JSONNode) {
    let trivia = node["trivia"] ?? node
    guard let id = (trivia["id"] ?? trivia["triviaId"]).flatMap(ToyUser.number), id > 0 else { return nil }
    self.id = id
    text = (trivia["text"] ?? trivia["triviaText"])?.text.map { visible($0, limit: Self.longest) } ?? "(the server tells no text)"
    up = max(0, trivia["upvotes"].flatMap(ToyUser.number) ?? 0)
    down = max(0, trivia["downvotes"].flatMap(ToyUser.number) ?? 0)
    vote = (node["userVote"] ?? node["userAction"]).flatMap(ToyUser.number).flatMap(ToyVote.init) ?? .none
  }

  /// Bytes of it in JSON, or a few more.
  var length: Int { text.utf8.reduce(120) { $0 + ($1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 2 : 1) } }

  /// As the server writes it.
  var json: JSON {
    ["trivia": ["id": .int(id), "text": .string(text), "upvotes": .int(up), "downvotes": .int(down)], "userVote": .int(vote.rawValue)]
  }

  static let columns = ["id", "fact", "up", "down", "vote", "pending"]

  /// One row of a report; `isPending`: the server has not got the vote yet.
  func row(isPending: Bool) -> [String] { [String(id), text, String(up), String(down), vote.word, isPending ? "yes" : ""] }

  /// What a person is told of a vote.
  var standing: String { "fact \(id): \(vote.word) (\(up) up, \(down) down)" }
}

/// All the facts that a user's toy has played, as the server told once.
struct ToyHistory: Sendable, Equatable {
  var user: Int
  var facts: [ToyFact]
  /// How many there are: a long history is kept in part.
  var total: Int
  /// When the server told them, in microseconds of the wall's clock; nil: that is just being asked.
  var time: Int64?

  /// Bytes of facts that are kept.
  private static let maxKept = 768 << 10

  init(user: Int, facts: [ToyFact]) { (self.user, self.facts, total) = (user, facts, facts.count) }

  /// An answer of the server: each fact once, the last word counting. nil where it is none.
  init?(_ node: JSONNode, user: Int) {
    guard let rows = node["triviaHistory"] ?? (node.kind == .array ? node : nil), rows.kind == .array else { return nil }
    var list = ToyFactList()
    for fact in rows.elements.compactMap(ToyFact.init) { list.add(fact) }
    self.init(user: user, facts: list.all)
  }

  /// The last of many facts: those that are kept.
  static func kept(of facts: [ToyFact]) -> ArraySlice<ToyFact> {
    var (start, length) = (facts.endIndex, 0)
    while start > 0 {
      length += facts[start - 1].length
      if length > maxKept { break }
      start -= 1
    }
    return facts[start...]
  }

  /// No more than is kept.
  var bounded: ToyHistory {
    var bounded = self
    bounded.facts = Array(Self.kept(of: facts))
    return bounded
  }

  /// What was kept.
  init?(kept bytes: [UInt8]) {
    guard let root = JSONNode(foreign: bytes), let user = root["user"]?.whole, let time = root["time"]?.whole else { return nil }
    self.init(root, user: user)
    self.time = Int64(time)
    total = max(facts.count, root["total"]?.whole ?? 0)
  }

  var bytes: [UInt8] {
    Array(
      JSON.members([
        "user": .int(user), "time": time.map { .int(Int($0)) }, "total": total > facts.count ? .int(total) : nil,
        "triviaHistory": .array(facts.map(\.json)),
      ]).text.utf8)
  }
}

/// A vote that the server has not got yet.
struct ToyPendingVote: Sendable, Equatable {
  /// The server whose user it is of.
  var server: String
  var user: Int
  var fact: Int
  var vote: ToyVote

  init(server: String, user: Int, fact: Int, vote: ToyVote) { (self.server, self.user, self.fact, self.vote) = (server, user, fact, vote) }

  /// A kept one.
  init?(_ node: JSONNode) {
    guard let server = node["server"]?.text, let user = node["user"]?.whole, let fact = node["fact"]?.whole,
      let vote = node["vote"]?.whole.flatMap(ToyVote.init)
    else { return nil }
    self.init(server: server, user: user, fact: fact, vote: vote)
  }

  var json: JSON { ["server": .string(server), "user": .int(user), "fact": .int(fact), "vote": .int(vote.rawValue)] }
}
