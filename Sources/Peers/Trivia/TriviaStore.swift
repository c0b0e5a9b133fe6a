// The store of a trivia server: accounts, facts, votes, token hashes.
// An account has two counters: `downloaded`, the id of the last fact that its toy has downloaded (initially 499, because toys ship with the
// facts up to that id), and `heard`, the id of the last fact that the toy has played. Source: the server of neils95/Trivio.

import Protocols

/// A registered user.
public struct TriviaUser: Sendable, Equatable {
  public var id: Int
  public var name: String?
  public var email: String
  /// The id of the last fact that the toy has downloaded, `triviaCount` in JSON.
  public var downloaded: Int
  /// The id of the last fact that the toy has played, or 0 for none.
  public var heard: Int

  /// Creates a user.
  public init(id: Int, name: String?, email: String, downloaded: Int = TriviaUser.lastShippedFact, heard: Int = 0) {
    (self.id, self.name, self.email, self.downloaded, self.heard) = (id, name, email, downloaded, heard)
  }

  /// The last id of the facts that toys ship with.
  public static let lastShippedFact = 499
}

/// A fact with its votes, from one user's point of view.
public struct TriviaEntry: Sendable, Equatable {
  public var fact: TriviaFact
  /// The number of votes for the fact, of all users.
  public var upvotes: Int
  /// The number of votes against the fact, of all users.
  public var downvotes: Int
  /// The vote of the user: -1, 0 or 1.
  public var vote: Int

  /// Creates an entry.
  public init(_ fact: TriviaFact, upvotes: Int, downvotes: Int, vote: Int) {
    (self.fact, self.upvotes, self.downvotes, self.vote) = (fact, upvotes, downvotes, vote)
  }
}

/// A store, shared by all connections. Errors describe failures of the store itself.
public protocol TriviaStore: Sendable {
  func user(_ id: Int) throws(ValueError) -> TriviaUser?
  /// The account with this e-mail address, case-insensitive.
  func account(_ email: String) throws(ValueError) -> (user: TriviaUser, password: TriviaPassword)?
  /// Adds an account. The address must be unused.
  func add(name: String?, email: String, password: TriviaPassword) throws(ValueError) -> TriviaUser
  /// Stores both counters.
  func setCounters(_ user: TriviaUser) throws(ValueError)

  /// The facts with these ids in order, from this user's point of view.
  func entries(_ ids: ClosedRange<Int>, of user: Int) throws(ValueError) -> [TriviaEntry]
  /// The fact with the lowest id above this one.
  func fact(after id: Int) throws(ValueError) -> TriviaFact?
  /// Stores facts. If `replacing`, facts with existing ids get the new text and keep their votes; otherwise they are unchanged.
  func load(_ facts: [TriviaFact], replacing: Bool) throws(ValueError)
  /// Sets the vote of a user on a fact; 0 removes it.
  func setVote(_ vote: Int, on fact: Int, of user: Int) throws(ValueError)

  /// Stores the hash of a token. Only a user's last `TriviaService.maxTokens` tokens are valid.
  func add(token hash: String, of user: Int) throws(ValueError)
  /// The user with this token hash.
  func owner(of hash: String) throws(ValueError) -> Int?
}
