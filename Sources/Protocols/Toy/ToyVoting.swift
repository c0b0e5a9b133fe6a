// Pending votes. Each vote is stored before it is sent. Votes are sent in order, one at a time, and removed when the server has accepted or
// permanently rejected them. If the server fails on a vote (status 500), this vote and later ones for the same fact wait; the others are
// sent. A vote whose response was lost is sent again, because a repeated vote has no effect.
// Source: neils95/Trivio, the controllers of Server/Trivio.

/// The pending votes, and the commands that wait for them. Only votes of the current user at the current server are sent. Other votes are
/// held until their user logs in to their server again.
struct ToyVoting: Sendable {
  static let key = "votes"
  private static let maxVotes = 1000
  private static let firstPause: Nanoseconds = 30 * .second
  private static let maxPause: Nanoseconds = 15 * 60 * .second

  private struct Entry: Sendable {
    let vote: ToyPendingVote
    let number: Int
    /// Whether the vote is stored.
    var isStored = false
    var command: CommandID?
    /// How often the server has failed on the vote (status 500).
    var failures = 0
    /// When the vote is sent again after a failure.
    var notBefore: Instant = .min
    /// The last error.
    var error: ToyError?
  }

  private var entries: [Entry] = []
  private var lastNumber = 0
  /// For each pending store, the number of the last vote that it contains.
  private var stores: [Int] = []
  private var failures = 0
  private var notBefore: Instant = .min
  /// The number of the vote in flight.
  private var sending: Int?
  /// The votes on which the server has failed since the last success.
  private var failedVotes: Set<Int> = []
  /// The number of failed votes at which all votes wait.
  private static let maxFailedVotes = 3
  /// Why all votes wait, after the server did not respond.
  private(set) var error: ToyError?
  /// The current user and server.
  private var owner: (server: String, user: Int)?

  /// The votes of the current user, at the current server.
  var votesOfUser: [ToyPendingVote] { entries.map(\.vote).filter(isOfUser) }
  /// All votes. For each vote: whether it is of the current user, and why it waits.
  var all: [(vote: ToyPendingVote, isOfUser: Bool, error: ToyError?)] {
    entries.map { ($0.vote, isOfUser($0.vote), $0.error ?? error) }
  }
  /// The number of votes that are held for other users.
  var held: Int { entries.count - votesOfUser.count }
  var isFull: Bool { entries.count >= Self.maxVotes }
  var callers: [CommandID] { entries.compactMap(\.command) }
  /// The number of votes of the current user that wait after an error, and the error; nil if none waits.
  var waiting: (count: Int, error: ToyError)? {
    if let error { return (votesOfUser.count, error) }
    let failed = entries.filter { isOfUser($0.vote) }.compactMap(\.error)
    return failed.first.map { (failed.count, $0) }
  }
  /// When the next vote is sent; nil if none can be sent.
  var due: Instant? { ready.map { max(notBefore, entries[$0].notBefore) }.min() }

  /// Returns the vote to send now, if any.
  mutating func nextToSend(at now: Instant) -> ToyPendingVote? {
    guard now >= notBefore, let index = ready.first(where: { now >= entries[$0].notBefore }) else { return nil }
    sending = entries[index].number
    return entries[index].vote
  }

  /// The indices of the votes that can be sent: for each fact, the first one.
  private var ready: [Int] {
    var facts: Set<Int> = []
    return entries.indices.filter { isOfUser(entries[$0].vote) && facts.insert(entries[$0].vote.fact).inserted && entries[$0].isStored }
  }
  private var sendingIndex: Int? { entries.firstIndex { $0.number == sending } }
  private func isOfUser(_ vote: ToyPendingVote) -> Bool { owner.map { $0 == (vote.server, vote.user) } ?? false }

  /// Whether the votes that are sent now are those of this user, at this server.
  func belongs(to user: ToyUser?, at server: String) -> Bool { owner?.server == user.map { _ in server } && owner?.user == user?.id }

  /// Sets the current user; nil after a logout.
  mutating func change(owner: ToyUser?, at server: String) {
    self.owner = owner.map { (server, $0.id) }
    (failures, failedVotes, error, notBefore, sending) = (0, [], nil, .min, nil)
  }

  /// Restores stored votes; returns false if they are corrupt.
  mutating func restore(_ bytes: [UInt8]) -> Bool {
    guard let root = JSONNode(untrusted: bytes), root.kind == .array else { return false }
    let votes = root.elements.compactMap(ToyPendingVote.init)
    for vote in votes.prefix(Self.maxVotes) {
      lastNumber += 1
      entries.append(Entry(vote: vote, number: lastNumber, isStored: true))
    }
    return votes.count == root.elements.count
  }

  /// Adds a vote, which is sent as soon as possible after earlier votes. A failed vote for the same fact is repeated first.
  mutating func add(_ vote: ToyPendingVote, for command: CommandID, _ effects: inout Effects) {
    lastNumber += 1
    notBefore = .min
    for index in indices(like: vote) { entries[index].notBefore = .min }
    entries.append(Entry(vote: vote, number: lastNumber, command: command))
    store(&effects)
  }

  private mutating func store(_ effects: inout Effects) {
    stores.append(lastNumber)
    let json = JSON.array(entries.map(\.vote.json))
    effects.append(.store(key: Self.key, entries.isEmpty ? [] : Array(json.text.utf8)))
  }

  /// Whether a store is pending.
  var isStoring: Bool { !stores.isEmpty }

  /// Handles the end of a store; returns the commands whose votes were not stored.
  mutating func stored(_ failure: String?) -> [CommandID] {
    guard !stores.isEmpty else { return [] }
    let number = stores.removeFirst()
    guard failure != nil else {
      for index in entries.indices where entries[index].number <= number { entries[index].isStored = true }
      return []
    }
    let lost = entries.filter { $0.number <= number && !$0.isStored }
    entries.removeAll { $0.number <= number && !$0.isStored }
    return lost.compactMap(\.command)
  }

  /// Removes the vote in flight, which the server has accepted or permanently rejected; returns the command that waits for it.
  mutating func removeInFlight(_ effects: inout Effects) -> CommandID? {
    guard let sendingIndex else { return nil }
    let done = entries.remove(at: sendingIndex)
    (failures, failedVotes, error, notBefore, sending) = (0, [], nil, .min, nil)
    store(&effects)
    return done.command
  }

  /// Delays the vote in flight, or all votes, after an error; returns the commands that waited for them. The votes remain pending.
  mutating func postpone(_ error: ToyError, at now: Instant) -> [(command: CommandID, vote: ToyPendingVote)] {
    let failed = sendingIndex
    sending = nil
    guard error.isPerRequest, let failed else {
      failedVotes = []
      return postponeAll(error, at: now)
    }
    failedVotes.insert(entries[failed].number)
    entries[failed].failures += 1
    entries[failed].notBefore = now &+ Self.pause(after: entries[failed].failures)
    guard failedVotes.count < Self.maxFailedVotes else { return postponeAll(error, at: now) }
    let waiting = indices(like: entries[failed].vote)
    for index in waiting { entries[index].error = error }
    return removeCallers(of: waiting)
  }

  private mutating func postponeAll(_ error: ToyError, at now: Instant) -> [(command: CommandID, vote: ToyPendingVote)] {
    failures += 1
    notBefore = now &+ Self.pause(after: failures)
    self.error = error
    return removeCallers(of: Array(entries.indices))
  }

  /// Removes and returns the commands that wait for these votes.
  private mutating func removeCallers(of indices: [Int]) -> [(command: CommandID, vote: ToyPendingVote)] {
    defer { for index in indices { entries[index].command = nil } }
    return indices.compactMap { index in entries[index].command.map { ($0, entries[index].vote) } }
  }

  /// The indices of all votes of the same user for the same fact as this vote.
  private func indices(like vote: ToyPendingVote) -> [Int] {
    entries.indices.filter {
      let other = entries[$0].vote
      return (other.server, other.user, other.fact) == (vote.server, vote.user, vote.fact)
    }
  }

  private static func pause(after failures: Int) -> Nanoseconds { min(firstPause << Int64(min(failures, 6) - 1), maxPause) }

  /// Ends the delay of all votes, because the server has responded to another request.
  mutating func serverResponded() { notBefore = .min }

  /// Discards the chosen votes; returns their number, and the commands that waited for them.
  mutating func drop(_ effects: inout Effects, where isChosen: (ToyPendingVote, Bool) -> Bool) -> (count: Int, callers: [CommandID]) {
    let chosen = entries.filter { isChosen($0.vote, isOfUser($0.vote)) }
    guard !chosen.isEmpty else { return (0, []) }
    entries.removeAll { entry in chosen.contains { $0.number == entry.number } }
    (failures, failedVotes, error, notBefore) = (0, [], nil, .min)
    store(&effects)
    return (chosen.count, chosen.compactMap(\.command))
  }

  mutating func cancel(_ command: CommandID) {
    for index in entries.indices where entries[index].command == command { entries[index].command = nil }
  }

  mutating func removeAllCallers() {
    for index in entries.indices { entries[index].command = nil }
  }
}
