// The results of commands. A response of the server is stored first and then reported. Without a response, the last stored response is
// reported with its age.

extension ToyMachine {
  // MARK: Responses

  mutating func handleResponse(_ request: RequestID, _ response: HTTPResponse, at now: Instant, _ effects: inout Effects) {
    guard let pending = pendingRequests.removeValue(forKey: request) else { return }
    do throws(ToyError) {
      switch pending {
      case .register(let id, let name, let email):
        var user = try ToyAnswer.user(response, isNew: true)
        (user.name, user.email) = (user.name ?? name, user.email ?? email)
        logIn(user, isNew: true, "registered and logged in as user \(user.id)", id, &effects)
      case .login(let id, let email):
        var user = try ToyAnswer.user(response, isNew: false)
        user.email = user.email ?? email
        var message = "logged in as user \(user.id)" + (user.name.map { ", \($0)" } ?? "")
        // If the dialect is wrong, the documented login request is the server's registration request.
        if settings.dialect == .documented, case .answered(201, _, _) = response {
          message += "; the server created a new account instead of logging in (201): use dialect = \"original\" with this server"
        }
        logIn(user, isNew: false, message, id, &effects)
      case .history(let id, let user, let fact):
        if let body = ToyAnswer.longHistory(response) {
          longHistories.append(ToyLongHistory(command: id, user: user, fact: fact, body: body))
        } else {
          let history = try ToyAnswer.history(response, of: user)
          if user == self.user?.id { setHistory(history, at: now, &effects) }
          reply(history, fact, to: id, note: nil, &effects)
        }
      case .vote(let vote): handleVoteResult(try ToyAnswer.voteResult(response, vote), vote, &effects)
      }
      voting.serverResponded()
    } catch {
      handleFailure(pending, error, at: now, &effects)
    }
  }

  mutating func handleFailure(_ pending: PendingRequest, _ error: ToyError, at now: Instant, _ effects: inout Effects) {
    switch pending {
    case .register(let id, _, _), .login(let id, _): fail(id, .refused(code: error.code, error.message), &effects)
    case .history(let id, let user, let fact):
      guard error.isTransient, let history, history.user == user else {
        return fail(id, .refused(code: error.code, error.message), &effects)
      }
      let age = DayClock.ageText((now &- historyReceivedAt) / .microsecond)
      let part = history.total > history.facts.count ? "; the last \(history.facts.count) of \(history.total) facts are stored" : ""
      reply(history, fact, to: id, note: "as of \(age) ago: \(error.message)\(part)", &effects)
    case .vote(let vote):
      if error.isTransient {
        let message = "stored, and sent when the server \(error.isPerRequest ? "accepts it" : "responds"): \(error.message)"
        for (id, vote) in voting.postpone(error, at: now) {
          effects.append(.complete(id, .success(Self.report(message, of: vote, "waiting"))))
        }
        return effects.publish(.lastVote, .string("fact \(vote.fact): \(vote.vote.name), \(message)"))
      }
      let caller = voting.removeInFlight(&effects)
      publishVotes(&effects)
      effects.publish(.lastVote, .string("fact \(vote.fact): \(error.message)"))
      if let caller {
        fail(caller, .refused(code: error.code, error.message), &effects)
      } else {
        effects.append(.event(name: "vote", text: "pending vote failed: \(error.message)"))
      }
    }
  }

  func reply(_ history: ToyHistory, _ fact: Int?, to id: CommandID, note: String?, _ effects: inout Effects) {
    var facts = history.facts
    if let fact {
      facts = facts.filter { $0.id == fact }
      if facts.isEmpty {
        let message = "the toy has not played fact \(fact)" + (note.map { " (\($0))" } ?? "")
        return fail(id, .refused(code: .notPlayed, message), &effects)
      }
    }
    effects.append(.complete(id, .success(Report(text: note, columns: ToyFact.columns, rows: rows(of: facts)))))
  }

  // MARK: Session

  private mutating func logIn(_ new: ToyUser, isNew: Bool, _ message: String, _ id: CommandID, _ effects: inout Effects) {
    var new = new
    new.server = settings.server
    // A server that has lost its data may assign the same number to another user.
    if isNew || new.id != user?.id { removeHistory(&effects) }
    user = new
    storing.append((Self.sessionKey, id, Report(text: message)))
    effects.append(.store(key: Self.sessionKey, new.bytes))
    changeOwner(&effects)
  }

  private mutating func changeOwner(_ effects: inout Effects) {
    // A vote in flight completes with its response; without a response it is sent again after the next login.
    if !voting.belongs(to: user, at: settings.server) {
      pendingRequests = pendingRequests.filter { if case .vote = $0.value { false } else { true } }
      for caller in voting.callers {
        effects.append(.complete(caller, .success(Report(text: "stored, and sent when you log in again: another user is logged in"))))
      }
      voting.removeAllCallers()
    }
    voting.change(owner: user, at: settings.server)
    publishUser(&effects)
    publishVotes(&effects)
    reportHeld(&effects)
  }

  mutating func logOut(_ id: CommandID, deletingVotes: Bool, _ effects: inout Effects) throws(CommandError) {
    guard user != nil else { throw needsLogin }
    try requireNoLogin()
    let count = voting.votesOfUser.count
    guard count == 0 || deletingVotes else {
      let message = count == 1 ? "1 vote has not been sent yet" : "\(count) votes have not been sent yet"
      throw .refused(code: .votesPending, "\(message): log out when the server responds, or delete them with --delete-votes")
    }
    if count > 0 {
      _ = deleteVotes("logged out", &effects) { $1 }
    }
    user = nil
    removeHistory(&effects)
    changeOwner(&effects)
    storing.append((Self.sessionKey, id, Report(text: "logged out")))
    effects.append(.store(key: Self.sessionKey, []))
  }

  private mutating func removeHistory(_ effects: inout Effects) {
    guard history != nil else { return }
    history = nil
    effects.append(.store(key: Self.historyKey, []))
    publishFacts(at: 0, &effects)
  }

  // MARK: Votes

  /// The pending votes, in the order in which they are sent.
  func pendingVotes() -> Report {
    let rows = voting.all.map { vote, isOfUser, error in
      let state = !isOfUser ? "held: log in as user \(vote.user)" : error.map { "waiting: \($0.message)" } ?? "in flight"
      return [String(vote.fact), vote.vote.name, String(vote.user), vote.server, state]
    }
    return Report(
      text: rows.isEmpty ? "no pending votes" : nil, columns: rows.isEmpty ? [] : ["fact", "vote", "user", "server", "state"], rows: rows)
  }

  /// Deletes votes; returns their number. `isChosen` receives a vote, and whether it is of the current user. A vote in flight may still
  /// reach the server.
  mutating func deleteVotes(_ reason: String, _ effects: inout Effects, where isChosen: (ToyPendingVote, Bool) -> Bool) -> Int {
    let dropped = voting.drop(&effects, where: isChosen)
    guard dropped.count > 0 else { return 0 }
    for caller in dropped.callers { fail(caller, .refused(code: .deleted, "the vote was deleted: \(reason)"), &effects) }
    for (request, pending) in pendingRequests {
      if case .vote(let vote) = pending, isChosen(vote, true) { pendingRequests[request] = nil }
    }
    publishVotes(&effects)
    return dropped.count
  }

  /// Sends the next pending vote, if one is due.
  mutating func sendNextVote(at now: Instant, _ effects: inout Effects) {
    let isVoting = pendingRequests.values.contains { if case .vote = $0 { true } else { false } }
    guard !isVoting, let vote = voting.nextToSend(at: now) else { return }
    send(.vote(vote, token: user?.id == vote.user ? user?.token : nil), as: .vote(vote), at: now, &effects)
  }

  private mutating func handleVoteResult(_ result: ToyVoteResult, _ vote: ToyPendingVote, _ effects: inout Effects) {
    let message: String
    switch result {
    case .unchanged: message = "fact \(vote.fact): already voted that way"
    case .counted(let fact):
      message = fact.summary
      if let index = history?.facts.firstIndex(where: { $0.id == fact.id }), history?.user == vote.user {
        history?.facts[index] = fact
        if history?.time != nil, let bytes = history?.bytes { effects.append(.store(key: Self.historyKey, bytes)) }
      }
    }
    let caller = voting.removeInFlight(&effects)
    publishVotes(&effects)
    effects.publish(.lastVote, .string(message))
    if let caller {
      effects.append(.complete(caller, .success(Self.report(message, of: vote, result == .unchanged ? "unchanged" : "counted"))))
    } else {
      effects.append(.event(name: "vote", text: "pending vote sent: \(message)"))
    }
  }

  /// The reply to a vote: whether the server has accepted it.
  private static func report(_ message: String, of vote: ToyPendingVote, _ state: String) -> Report {
    Report(text: message, columns: ["fact", "vote", "state"], rows: [[String(vote.fact), vote.vote.name, state]])
  }

  // MARK: Stored state and time

  /// Sets the wall-clock time of the history that was just received.
  mutating func updateClock(_ wall: WallTime, _ effects: inout Effects) {
    guard history != nil, history?.time == nil else { return }
    history?.time = wall.microseconds
    if let bytes = history?.bytes { effects.append(.store(key: Self.historyKey, bytes)) }
  }

  mutating func stored(_ key: String, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    if key == ToyVoting.key {
      for id in voting.stored(failure) { fail(id, .refused(code: .notStored, failure ?? ""), &effects) }
      publishVotes(&effects)
      if failure == nil, voting.isStoring { return }
    }
    guard let index = storing.firstIndex(where: { $0.key == key }) else { return }
    let (_, id, report) = storing.remove(at: index)
    guard let failure else { return effects.append(.complete(id, .success(report))) }
    fail(id, .refused(code: .notStored, "\(report.text ?? ""), but not stored, so lost when the daemon restarts: \(failure)"), &effects)
  }

  // MARK: The toy's Wi-Fi

  /// Ends the Wi-Fi setup with this outcome, or does nothing if `outcome` is nil.
  mutating func endSetup(_ outcome: ToySetup.Outcome?, _ effects: inout Effects) {
    guard let outcome, let ended = setup else { return }
    (setup, setupResult) = (nil, outcome == .sent ? "sent" : "idle")
    effects.append(.closeLink(ToySetup.link))
    switch outcome {
    case .sent:
      effects.append(.event(name: "wifi", text: "credentials sent to the toy"))
      effects.append(.complete(ended.command, .success(Report(text: ended.summary, progress: 1))))
    case .failed(let error): fail(ended.command, error, &effects)
    }
  }
}
