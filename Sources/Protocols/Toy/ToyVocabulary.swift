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
    case "clear": self = .none
    default: return nil
    }
  }

  var word: String {
    switch self {
    case .up: "up"
    case .down: "down"
    case .none: "no vote"
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

  /// As the server writes it.
  var json: JSON {
    ["trivia": ["id": .int(id), "text": .string(text), "upvotes": .int(up), "downvotes": .int(down)], "userVote": .int(vote.rawValue)]
  }

  static let columns = ["id", "fact", "up", "down", "vote"]

  var row: [String] { [String(id), text, String(up), String(down), vote == .none ? "" : vote.word] }

  /// What a person is told of a vote.
  var standing: String { "fact \(id): \(vote.word) (\(up) up, \(down) down)" }
}

/// All the facts that a user's toy has played, as the server told once.
struct ToyHistory: Sendable, Equatable {
  var user: Int
  var facts: [ToyFact]
  /// When the server told them, in microseconds of the wall's clock; nil: that is just being asked.
  var time: Int64?

  /// An answer of the server: each fact once, the last word counting. nil where it is none.
  init?(_ node: JSONNode, user: Int) {
    guard let rows = node["triviaHistory"] ?? (node.kind == .array ? node : nil), rows.kind == .array else { return nil }
    self.user = user
    facts = []
    var places: [Int: Int] = [:]
    for fact in rows.elements.compactMap(ToyFact.init) {
      if let place = places[fact.id] {
        facts[place] = fact
      } else {
        places[fact.id] = facts.count
        facts.append(fact)
      }
    }
  }

  /// What was kept.
  init?(kept bytes: [UInt8]) {
    guard let root = JSONNode(foreign: bytes), let user = root["user"]?.whole, let time = root["time"]?.whole else { return nil }
    self.init(root, user: user)
    self.time = Int64(time)
  }

  var bytes: [UInt8] {
    Array(
      JSON.members(["user": .int(user), "time": time.map { .int(Int($0)) }, "triviaHistory": .array(facts.map(\.json))]).text.utf8)
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
