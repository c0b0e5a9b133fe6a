// What a trivia server keeps, and of whom: accounts, facts, votes, tokens. The rules are the server's; a store only keeps, and
// must never know a password or a token, nor forget what it said it keeps.
// Facts: triviatoy.md §B. An account has two counters: `downloaded`, the id of the last fact its toy fetched (`triviaCount`;
// 499 at first, because toys come with 500 facts), and `heard`, how many of the facts from id 1 on the toy said it has played.

import Protocols

/// Somebody who registered.
public struct TriviaUser: Sendable, Equatable {
  public var id: Int
  public var name: String?
  public var email: String
  /// The id of the last fact that the toy fetched.
  public var downloaded: Int
  /// Facts 1 to this one were played; 0: none.
  public var heard: Int

  /// Somebody with these counters.
  public init(id: Int, name: String?, email: String, downloaded: Int = TriviaUser.shipped, heard: Int = 0) {
    (self.id, self.name, self.email, self.downloaded, self.heard) = (id, name, email, downloaded, heard)
  }

  /// What a toy comes with: its first download is the fact behind this one.
  public static let shipped = 499
}

/// A fact as one user sees it.
public struct TriviaEntry: Sendable, Equatable {
  public var fact: TriviaFact
  /// Everybody's votes.
  public var upvotes: Int
  public var downvotes: Int
  /// The user's own: -1, 0 or 1.
  public var vote: Int

  /// A fact with its votes.
  public init(_ fact: TriviaFact, upvotes: Int, downvotes: Int, vote: Int) {
    (self.fact, self.upvotes, self.downvotes, self.vote) = (fact, upvotes, downvotes, vote)
  }
}

/// What is kept. Connections share it. An error is in a person's words: what is wrong with the store itself.
public protocol TriviaStore: Sendable {
  func user(_ id: Int) throws(ValueError) -> TriviaUser?
  /// Who registered with this e-mail address, whatever the case of its letters.
  func account(_ email: String) throws(ValueError) -> (user: TriviaUser, password: TriviaPassword)?
  /// A new account. The address is nobody's yet.
  func add(name: String?, email: String, password: TriviaPassword) throws(ValueError) -> TriviaUser
  /// Keeps both counters.
  func setCounters(_ user: TriviaUser) throws(ValueError)

  /// The facts of these ids that exist, by id, as this user sees them.
  func entries(_ ids: ClosedRange<Int>, of user: Int) throws(ValueError) -> [TriviaEntry]
  /// The fact of the lowest id above this one.
  func fact(after id: Int) throws(ValueError) -> TriviaFact?
  /// Keeps facts. One of an id that is there is left as it is, or takes the place of the other and keeps its votes.
  func load(_ facts: [TriviaFact], replacing: Bool) throws(ValueError)
  /// The user's vote on a fact; 0 takes it back.
  func setVote(_ vote: Int, on fact: Int, of user: Int) throws(ValueError)

  /// Keeps the hash of a token; of many of one user the last `TriviaService.maxTokens` count.
  func keep(token hash: String, of user: Int) throws(ValueError)
  /// Whose token has this hash.
  func owner(of hash: String) throws(ValueError) -> Int?
}
