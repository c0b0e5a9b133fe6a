// Votes on their way: each is kept before it is sent, all go out in the order in which they were given, one at a time, and one that
// the server has taken or refused for good is never sent again. One on which the server fails waits by itself, with later ones for the
// same fact: the others go on. A vote whose answer was lost is sent once more, which is harmless: the same vote again changes nothing.
// Facts: protocols of the Trivia toy, §B, call 4.

/// The votes that servers have not got yet, and who waits for them. Only those of whoever is logged in are sent; those of others, and
/// of other servers, are held until they are logged in again.
struct ToyVoting: Sendable {
  static let key = "votes"
  private static let most = 1000
  private static let firstPause: Nanoseconds = 30 * .second
  private static let maxPause: Nanoseconds = 15 * 60 * .second

  private struct Entry: Sendable {
    let vote: ToyPendingVote
    let number: Int
    /// The disk has it.
    var isKept = false
    var command: CommandID?
    /// How often the server failed on it (500), when it is tried again, and what the server said.
    var failures = 0
    var notBefore: Instant = .min
    var trouble: ToyTrouble?
  }

  private var entries: [Entry] = []
  private var lastNumber = 0
  /// What each store that is under way holds: the votes up to this number.
  private var stores: [Int] = []
  private var failures = 0
  private var notBefore: Instant = .min
  /// The number of the vote that is with the server.
  private var sending: Int?
  /// The votes on which the server failed since it last took one.
  private var failedVotes: Set<Int> = []
  /// So many are no matter of single votes.
  private static let maxFailedVotes = 3
  /// Why all wait, once the server did not answer.
  private(set) var trouble: ToyTrouble?
  /// Who is logged in, and at which server.
  private var owner: (server: String, user: Int)?

  /// Those of whoever is logged in.
  var live: [ToyPendingVote] { entries.map(\.vote).filter(isLive) }
  /// All of them, and whether whoever gave one is logged in.
  var all: [(vote: ToyPendingVote, isLive: Bool, trouble: ToyTrouble?)] {
    entries.map { ($0.vote, isLive($0.vote), $0.trouble ?? trouble) }
  }
  /// How many are held for others.
  var held: Int { entries.count - live.count }
  var isFull: Bool { entries.count >= Self.most }
  var callers: [CommandID] { entries.compactMap(\.command) }
  /// Why votes of whoever is logged in wait, and how many.
  var waiting: (count: Int, trouble: ToyTrouble)? {
    if let trouble { return (live.count, trouble) }
    let failed = entries.filter { isLive($0.vote) }.compactMap(\.trouble)
    return failed.first.map { (failed.count, $0) }
  }
  /// When the next vote is sent.
  var due: Instant? { ready.map { max(notBefore, entries[$0].notBefore) }.min() }

  /// Takes the vote that is sent now.
  mutating func take(at now: Instant) -> ToyPendingVote? {
    guard now >= notBefore, let place = ready.first(where: { now >= entries[$0].notBefore }) else { return nil }
    sending = entries[place].number
    return entries[place].vote
  }

  /// Those that can be sent: of several for a fact the first.
  private var ready: [Int] {
    var facts: Set<Int> = []
    return entries.indices.filter { isLive(entries[$0].vote) && facts.insert(entries[$0].vote.fact).inserted && entries[$0].isKept }
  }
  private var place: Int? { entries.firstIndex { $0.number == sending } }
  private func isLive(_ vote: ToyPendingVote) -> Bool { owner.map { $0 == (vote.server, vote.user) } ?? false }

  /// Whether it is they who are logged in.
  func belongs(to user: ToyUser?, at server: String) -> Bool { owner?.server == user.map { _ in server } && owner?.user == user?.id }

  /// Somebody is logged in from now on, or nobody.
  mutating func change(owner: ToyUser?, at server: String) {
    self.owner = owner.map { (server, $0.id) }
    (failures, failedVotes, trouble, notBefore, sending) = (0, [], nil, .min, nil)
  }

  /// Takes what earlier runs kept; false where that is damaged.
  mutating func restore(_ bytes: [UInt8]) -> Bool {
    guard let root = JSONNode(foreign: bytes), root.kind == .array else { return false }
    let votes = root.elements.compactMap(ToyPendingVote.init)
    for vote in votes.prefix(Self.most) {
      lastNumber += 1
      entries.append(Entry(vote: vote, number: lastNumber, isKept: true))
    }
    return votes.count == root.elements.count
  }

  /// A person votes: it is tried at once, behind those before it. One for its fact on which the server failed is tried again first.
  mutating func add(_ vote: ToyPendingVote, for command: CommandID, _ effects: inout Effects) {
    lastNumber += 1
    notBefore = .min
    for place in places(like: vote) { entries[place].notBefore = .min }
    entries.append(Entry(vote: vote, number: lastNumber, command: command))
    store(&effects)
  }

  private mutating func store(_ effects: inout Effects) {
    stores.append(lastNumber)
    let json = JSON.array(entries.map(\.vote.json))
    effects.append(.store(key: Self.key, entries.isEmpty ? [] : Array(json.text.utf8)))
  }

  /// The disk has not got all yet.
  var isStoring: Bool { !stores.isEmpty }

  /// The disk has what was stored, or not: gives who voted in vain.
  mutating func stored(_ failure: String?) -> [CommandID] {
    guard !stores.isEmpty else { return [] }
    let number = stores.removeFirst()
    guard failure != nil else {
      for index in entries.indices where entries[index].number <= number { entries[index].isKept = true }
      return []
    }
    let lost = entries.filter { $0.number <= number && !$0.isKept }
    entries.removeAll { $0.number <= number && !$0.isKept }
    return lost.compactMap(\.command)
  }

  /// The server has taken the first, or refused it for good: gives who waits for that.
  mutating func settle(_ effects: inout Effects) -> CommandID? {
    guard let place else { return nil }
    let done = entries.remove(at: place)
    (failures, failedVotes, trouble, notBefore, sending) = (0, [], nil, .min, nil)
    store(&effects)
    return done.command
  }

  /// The server did not answer, or failed on the vote that it was sent: gives those who do not wait any longer, while votes do.
  mutating func postpone(_ trouble: ToyTrouble, at now: Instant) -> [(command: CommandID, vote: ToyPendingVote)] {
    let failed = place
    sending = nil
    guard trouble.isOfCall, let failed else {
      failedVotes = []
      return postponeAll(trouble, at: now)
    }
    failedVotes.insert(entries[failed].number)
    entries[failed].failures += 1
    entries[failed].notBefore = now &+ Self.pause(after: entries[failed].failures)
    guard failedVotes.count < Self.maxFailedVotes else { return postponeAll(trouble, at: now) }
    let waiting = places(like: entries[failed].vote)
    for place in waiting { entries[place].trouble = trouble }
    return takeCallers(of: waiting)
  }

  private mutating func postponeAll(_ trouble: ToyTrouble, at now: Instant) -> [(command: CommandID, vote: ToyPendingVote)] {
    failures += 1
    notBefore = now &+ Self.pause(after: failures)
    self.trouble = trouble
    return takeCallers(of: Array(entries.indices))
  }

  /// Those who wait for these votes, and need not any longer.
  private mutating func takeCallers(of places: [Int]) -> [(command: CommandID, vote: ToyPendingVote)] {
    defer { for place in places { entries[place].command = nil } }
    return places.compactMap { place in entries[place].command.map { ($0, entries[place].vote) } }
  }

  /// The votes of one person for one fact.
  private func places(like vote: ToyPendingVote) -> [Int] {
    entries.indices.filter {
      let other = entries[$0].vote
      return (other.server, other.user, other.fact) == (vote.server, vote.user, vote.fact)
    }
  }

  private static func pause(after failures: Int) -> Nanoseconds { min(firstPause << Int64(min(failures, 6) - 1), maxPause) }

  /// The server has answered something else.
  mutating func serverAnswers() { notBefore = .min }

  /// Forgets those that are chosen by the vote and whether whoever gave it is logged in: how many, and who waited.
  mutating func drop(_ effects: inout Effects, where isChosen: (ToyPendingVote, Bool) -> Bool) -> (count: Int, callers: [CommandID]) {
    let chosen = entries.filter { isChosen($0.vote, isLive($0.vote)) }
    guard !chosen.isEmpty else { return (0, []) }
    entries.removeAll { entry in chosen.contains { $0.number == entry.number } }
    (failures, failedVotes, trouble, notBefore) = (0, [], nil, .min)
    store(&effects)
    return (chosen.count, chosen.compactMap(\.command))
  }

  mutating func forget(_ command: CommandID) {
    for index in entries.indices where entries[index].command == command { entries[index].command = nil }
  }

  mutating func forgetCallers() {
    for index in entries.indices { entries[index].command = nil }
  }
}
