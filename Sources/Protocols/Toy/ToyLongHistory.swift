// Reads a long history and sends it to the caller, one piece per turn of the event loop. The part that stays in memory and on
// disk is bounded.

/// A long history that is being parsed or sent to the caller, one piece per turn of the event loop.
struct ToyLongHistory: Sendable {
  /// The number of facts in one progress report.
  static let factsPerPiece = 200

  let command: CommandID
  let user: Int
  /// The requested fact, or nil for all facts.
  let fact: Int?
  var reader: ToyHistoryReader
  /// The parsed facts, which are sent in pieces.
  var facts: [ToyFact] = []
  /// The start of the next piece in `facts`.
  var next = 0
  /// The start of the last piece, which is sent with the reply instead of a progress report; nil while the facts are being parsed.
  var lastPiece: Int?

  init(command: CommandID, user: Int, fact: Int?, body: [UInt8]) {
    (self.command, self.user, self.fact, reader) = (command, user, fact, ToyHistoryReader(body))
  }
}

extension ToyMachine {
  /// Processes the next piece of the first history.
  mutating func readNextPiece(at now: Instant, _ effects: inout Effects) {
    guard !longHistories.isEmpty else { return }
    if let lastPiece = longHistories[0].lastPiece { return sendNextPiece(before: lastPiece, &effects) }
    // Advance the reader in place, to avoid a copy of the parsed facts.
    switch longHistories[0].reader.step() {
    case .more: break
    case .done(let facts): finishParsing(facts, at: now, &effects)
    case .failed:
      let failed = longHistories.removeFirst()
      let error = ToyError.transient("no list of facts in the server's response: check the key `server`")
      handleFailure(.history(failed.command, user: failed.user, fact: failed.fact), error, at: now, &effects)
    }
  }

  private mutating func finishParsing(_ facts: [ToyFact], at now: Instant, _ effects: inout Effects) {
    let (command, user, fact) = (longHistories[0].command, longHistories[0].user, longHistories[0].fact)
    let all = ToyHistory(user: user, facts: facts)
    if user == self.user?.id { setHistory(all, at: now, &effects) }
    if let fact {
      longHistories.removeFirst()
      return reply(all, fact, to: command, note: nil, &effects)
    }
    (longHistories[0].facts, longHistories[0].lastPiece) = (facts, ToyHistory.storedPart(of: facts).startIndex)
  }

  private mutating func sendNextPiece(before lastPiece: Int, _ effects: inout Effects) {
    guard longHistories[0].next >= lastPiece else {
      let end = min(longHistories[0].next + ToyLongHistory.factsPerPiece, lastPiece)
      let piece = Report(columns: ToyFact.columns, rows: rows(of: longHistories[0].facts[longHistories[0].next..<end]))
      longHistories[0].next = end
      return effects.append(.progress(longHistories[0].command, piece))
    }
    let finished = longHistories.removeFirst()
    let last = finished.facts[lastPiece...]
    let message = lastPiece == 0 ? nil : "the last \(last.count) of \(finished.facts.count) facts; set the `more` flag to get all of them"
    effects.append(.complete(finished.command, .success(Report(text: message, columns: ToyFact.columns, rows: rows(of: last)))))
  }

  /// Publishes the history that was just received. It is stored once its wall-clock time is known.
  mutating func setHistory(_ new: ToyHistory, at now: Instant, _ effects: inout Effects) {
    (history, historyReceivedAt) = (new.bounded, now)
    publishFacts(at: now, &effects)
    effects.append(.requestTime)
  }

  /// The rows of facts, with pending votes.
  func rows(of facts: some Sequence<ToyFact>) -> [[String]] {
    // If there are several votes for a fact, the last one counts.
    let waiting = Dictionary(voting.votesOfUser.map { ($0.fact, $0.vote) }) { $1 }
    return facts.map { fact in
      var fact = fact
      let vote = waiting[fact.id]
      fact.vote = vote ?? fact.vote
      return fact.row(isPending: vote != nil)
    }
  }
}
