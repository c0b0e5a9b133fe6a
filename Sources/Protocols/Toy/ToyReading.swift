// Reads and returns a long history, one piece per turn of the loop. The stored part, in memory and on disk, is bounded.

extension ToyMachine {
  /// Processes the next piece of the first history.
  mutating func readNextPiece(at now: Instant, _ effects: inout Effects) {
    guard !long.isEmpty else { return }
    if let rest = long[0].rest { return sendNextPiece(rest, &effects) }
    // Advance the reader in place, to avoid a copy of the parsed facts.
    switch long[0].reader.step() {
    case .more: break
    case .done(let facts): read(facts, at: now, &effects)
    case .failed:
      let pendingRequests = long.removeFirst()
      let error = ToyError.transient("no list of facts in the server's response: check server")
      handleFailure(.history(pendingRequests.command, user: pendingRequests.user, fact: pendingRequests.fact), error, at: now, &effects)
    }
  }

  private mutating func read(_ facts: [ToyFact], at now: Instant, _ effects: inout Effects) {
    let (command, user, fact) = (long[0].command, long[0].user, long[0].fact)
    let all = ToyHistory(user: user, facts: facts)
    if user == self.user?.id { setHistory(all, at: now, &effects) }
    if let fact {
      long.removeFirst()
      return reply(all, fact, to: command, note: nil, &effects)
    }
    (long[0].facts, long[0].rest) = (facts, ToyHistory.storedPart(of: facts).startIndex)
  }

  private mutating func sendNextPiece(_ rest: Int, _ effects: inout Effects) {
    guard long[0].next >= rest else {
      let end = min(long[0].next + ToyLongHistory.stepLength, rest)
      let step = Report(columns: ToyFact.columns, rows: rows(of: long[0].facts[long[0].next..<end]))
      long[0].next = end
      return effects.append(.progress(long[0].command, step))
    }
    let finished = long.removeFirst()
    let last = finished.facts[rest...]
    let message = rest == 0 ? nil : "the last \(last.count) of \(finished.facts.count) facts; call with more for all"
    effects.append(.complete(finished.command, .success(Report(text: message, columns: ToyFact.columns, rows: rows(of: last)))))
  }

  /// Stores the history that was just received.
  mutating func setHistory(_ new: ToyHistory, at now: Instant, _ effects: inout Effects) {
    (history, historyReceivedAt) = (new.bounded, now)
    publishFacts(at: now, &effects)
    effects.append(.requestTime)
  }

  /// The rows of facts, with pending votes.
  func rows(of facts: some Sequence<ToyFact>) -> [[String]] {
    // Of several votes for a fact, the last one counts.
    let waiting = Dictionary(voting.live.map { ($0.fact, $0.vote) }) { $1 }
    return facts.map { fact in
      var fact = fact
      let vote = waiting[fact.id]
      fact.vote = vote ?? fact.vote
      return fact.row(isPending: vote != nil)
    }
  }
}
