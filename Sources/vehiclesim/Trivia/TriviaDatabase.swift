// The SQLite store of `vehiclesim trivia`. It contains only hashes of passwords and tokens.

import Peers
import Protocols
import Synchronization

/// The store of a trivia server in a file, or in memory.
final class TriviaDatabase: TriviaStore {
  private static let application: Int32 = 0x5472_6976  // "Triv"
  private static let schema = """
    CREATE TABLE users (
      id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, email TEXT NOT NULL UNIQUE COLLATE NOCASE, password TEXT NOT NULL,
      downloaded INTEGER NOT NULL, heard INTEGER NOT NULL) STRICT;
    CREATE TABLE facts (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
    CREATE TABLE votes (
      fact INTEGER NOT NULL REFERENCES facts, user INTEGER NOT NULL REFERENCES users, vote INTEGER NOT NULL CHECK (vote IN (-1, 1)),
      PRIMARY KEY (fact, user)) STRICT, WITHOUT ROWID;
    CREATE TABLE tokens (id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, user INTEGER NOT NULL REFERENCES users) STRICT;
    CREATE INDEX tokens_of_user ON tokens (user, id);
    """

  private let file: Mutex<SQLiteFile>

  /// Opens or creates the file, or a database in memory if `path` is nil.
  init(_ path: String?) throws(ValueError) {
    file = Mutex(try SQLiteFile(path, application: Self.application, version: 1, schema: Self.schema))
  }

  deinit { file.withLock { $0.close() } }

  @discardableResult private func rows(_ sql: String, _ arguments: [Value?]) throws(ValueError) -> [[Value?]] {
    try file.withLock { (file) throws(ValueError) in try file.rows(sql, arguments) }
  }

  // MARK: Accounts

  func user(_ id: Int) throws(ValueError) -> TriviaUser? {
    try rows("SELECT id, name, email, downloaded, heard FROM users WHERE id = ?", [.int(id)]).first.flatMap(Self.user)
  }

  func account(_ email: String) throws(ValueError) -> (user: TriviaUser, password: TriviaPassword)? {
    let row = try rows("SELECT id, name, email, downloaded, heard, password FROM users WHERE email = ?", [.string(email)]).first
    guard let row, let user = Self.user(row) else { return nil }
    guard let password = TriviaPassword(text: row[5]?.text ?? "") else {
      throw ValueError("cannot read the password hash of user \(user.id)")
    }
    return (user, password)
  }

  func add(name: String?, email: String, password: TriviaPassword) throws(ValueError) -> TriviaUser {
    var user = TriviaUser(id: 0, name: name, email: email)
    let arguments: [Value?] = [
      name.map(Value.string), .string(email), .string(password.text), .int(user.downloaded), .int(user.heard),
    ]
    user.id = try file.withLock { (file) throws(ValueError) in
      try file.rows("INSERT INTO users (name, email, password, downloaded, heard) VALUES (?, ?, ?, ?, ?)", arguments)
      return file.lastID
    }
    return user
  }

  func setCounters(_ user: TriviaUser) throws(ValueError) {
    try rows("UPDATE users SET downloaded = ?, heard = ? WHERE id = ?", [.int(user.downloaded), .int(user.heard), .int(user.id)])
  }

  private static func user(_ row: [Value?]) -> TriviaUser? {
    guard let id = row[0]?.int, let email = row[2]?.text, let downloaded = row[3]?.int, let heard = row[4]?.int else { return nil }
    return TriviaUser(id: id, name: row[1]?.text, email: email, downloaded: downloaded, heard: heard)
  }

  // MARK: Facts

  func entries(_ ids: ClosedRange<Int>, of user: Int) throws(ValueError) -> [TriviaEntry] {
    let results = try rows(
      """
      SELECT id, text, coalesce(sum(vote = 1), 0), coalesce(sum(vote = -1), 0), coalesce(sum(CASE user WHEN ? THEN vote END), 0)
      FROM facts LEFT JOIN votes ON fact = id WHERE id BETWEEN ? AND ? GROUP BY id ORDER BY id
      """, [.int(user), .int(ids.lowerBound), .int(ids.upperBound)])
    return results.compactMap { row in
      guard let fact = Self.fact(row), let up = row[2]?.int, let down = row[3]?.int, let vote = row[4]?.int else { return nil }
      return TriviaEntry(fact, upvotes: up, downvotes: down, vote: vote)
    }
  }

  func fact(after id: Int) throws(ValueError) -> TriviaFact? {
    try rows("SELECT id, text FROM facts WHERE id > ? ORDER BY id LIMIT 1", [.int(id)]).first.flatMap(Self.fact)
  }

  func load(_ facts: [TriviaFact], replacing: Bool) throws(ValueError) {
    try file.withLock { (file) throws(ValueError) in
      try file.run("BEGIN")
      for fact in facts {
        try file.rows(
          "INSERT INTO facts (id, text) VALUES (?, ?) ON CONFLICT DO \(replacing ? "UPDATE SET text = excluded.text" : "NOTHING")",
          [.int(fact.id), .string(fact.text)])
      }
      try file.run("COMMIT")
    }
  }

  func setVote(_ vote: Int, on fact: Int, of user: Int) throws(ValueError) {
    if vote == 0 {
      try rows("DELETE FROM votes WHERE fact = ? AND user = ?", [.int(fact), .int(user)])
    } else {
      try rows("INSERT OR REPLACE INTO votes (fact, user, vote) VALUES (?, ?, ?)", [.int(fact), .int(user), .int(vote)])
    }
  }

  private static func fact(_ row: [Value?]) -> TriviaFact? {
    guard let id = row[0]?.int, let text = row[1]?.text else { return nil }
    return TriviaFact(id, stored: text)
  }

  // MARK: Tokens

  func add(token hash: String, of user: Int) throws(ValueError) {
    try rows("INSERT INTO tokens (hash, user) VALUES (?, ?)", [.string(hash), .int(user)])
    try rows(
      "DELETE FROM tokens WHERE user = ?1 AND id NOT IN (SELECT id FROM tokens WHERE user = ?1 ORDER BY id DESC LIMIT ?2)",
      [.int(user), .int(TriviaService.maxTokens)])
  }

  func owner(of hash: String) throws(ValueError) -> Int? {
    try rows("SELECT user FROM tokens WHERE hash = ?", [.string(hash)]).first?[0]?.int
  }
}

extension Value {
  fileprivate var int: Int? { if case .int(let number) = self { number } else { nil } }
}
