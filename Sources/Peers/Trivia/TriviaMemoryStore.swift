// A store in memory for tests, which behaves like the database.

import Protocols
import Synchronization

/// The store of a trivia server in memory.
public final class TriviaMemoryStore: TriviaStore {
  private struct Contents {
    var users: [Int: TriviaUser] = [:]
    var passwords: [Int: TriviaPassword] = [:]
    var facts: [Int: String] = [:]
    /// The votes by fact, then by user.
    var votes: [Int: [Int: Int]] = [:]
    var tokens: [(hash: String, user: Int)] = []
    var nextUser: Int
  }

  private let contents: Mutex<Contents>

  /// Creates an empty store whose first user gets this id.
  public init(firstUser: Int = 1) { contents = Mutex(Contents(nextUser: firstUser)) }

  public func user(_ id: Int) -> TriviaUser? { contents.withLock { $0.users[id] } }

  public func account(_ email: String) -> (user: TriviaUser, password: TriviaPassword)? {
    contents.withLock { all in
      let user = all.users.values.first { $0.email.lowercased() == email.lowercased() }
      return user.flatMap { user in all.passwords[user.id].map { (user, $0) } }
    }
  }

  public func add(name: String?, email: String, password: TriviaPassword) -> TriviaUser {
    contents.withLock { all in
      let user = TriviaUser(id: all.nextUser, name: name, email: email)
      all.nextUser += 1
      (all.users[user.id], all.passwords[user.id]) = (user, password)
      return user
    }
  }

  public func setCounters(_ user: TriviaUser) {
    contents.withLock { all in
      all.users[user.id]?.downloaded = user.downloaded
      all.users[user.id]?.heard = user.heard
    }
  }

  public func entries(_ ids: ClosedRange<Int>, of user: Int) -> [TriviaEntry] {
    contents.withLock { all in
      all.facts.keys.filter(ids.contains).sorted().map { id in
        let votes = all.votes[id] ?? [:]
        let (up, down) = (votes.values.count { $0 == 1 }, votes.values.count { $0 == -1 })
        return TriviaEntry(TriviaFact(id, stored: all.facts[id] ?? ""), upvotes: up, downvotes: down, vote: votes[user] ?? 0)
      }
    }
  }

  public func fact(after id: Int) -> TriviaFact? {
    contents.withLock { all in all.facts.filter { $0.key > id }.min { $0.key < $1.key }.map { TriviaFact($0.key, stored: $0.value) } }
  }

  public func load(_ facts: [TriviaFact], replacing: Bool) {
    contents.withLock { all in
      for fact in facts where replacing || all.facts[fact.id] == nil { all.facts[fact.id] = fact.text }
    }
  }

  public func setVote(_ vote: Int, on fact: Int, of user: Int) {
    contents.withLock { $0.votes[fact, default: [:]][user] = vote == 0 ? nil : vote }
  }

  public func add(token hash: String, of user: Int) {
    contents.withLock { all in
      all.tokens.append((hash, user))
      guard all.tokens.count(where: { $0.user == user }) > TriviaService.maxTokens else { return }
      if let oldest = all.tokens.firstIndex(where: { $0.user == user }) { all.tokens.remove(at: oldest) }
    }
  }

  public func owner(of hash: String) -> Int? { contents.withLock { $0.tokens.first { $0.hash == hash }?.user } }
}
