// What a person can want of a toy, and what becomes of it. Who is not logged in is told how; what the server tells is kept first and
// said then; where it does not answer, what it told last is said with its age.

extension ToyMachine {
  private var needsLogin: CommandError {
    .refused(code: "needs-login", "nobody is logged in: vehiclectl toy login EMAIL, or vehiclectl toy register NAME EMAIL")
  }

  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    do throws(CommandError) {
      guard case .run(let index, let arguments) = command, let action = ToyAction(rawValue: index) else {
        throw .refused(code: "unknown", "a toy has nothing that can be set")
      }
      if isStopped { throw .notConnected("the device is being stopped") }
      try run(action, arguments, for: id, at: now, &effects)
    } catch {
      fail(id, error, &effects)
    }
  }

  private mutating func run(
    _ action: ToyAction, _ arguments: [String: Value], for id: CommandID, at now: Instant, _ effects: inout Effects
  ) throws(CommandError) {
    switch action {
    case .register:
      let (name, email) = (try text("name", arguments, 1...100), try email(arguments))
      try beAlone()
      ask(
        .register(name: name, email: email, password: try password(arguments)), as: .register(id, name: name, email: email), at: now,
        &effects)
    case .login:
      let email = try email(arguments)
      try beAlone()
      ask(.login(email: email, password: try password(arguments)), as: .login(id, email: email), at: now, &effects)
    case .logout: try logOut(id, drop: arguments["drop-votes"] == .bool(true), &effects)
    case .whoami:
      guard let user else { throw needsLogin }
      let facts = history.map { String($0.facts.count) } ?? ""
      let report = Report(columns: ["id", "name", "email", "facts"], rows: [[String(user.id), user.name ?? "", user.email ?? "", facts]])
      effects.append(.complete(id, .success(report)))
    case .history, .fact:
      guard let user else { throw needsLogin }
      var fact: Int?
      if action == .fact { fact = try factID(arguments) }
      ask(.history(user), as: .history(id, user: user.id, fact: fact), at: now, &effects)
    case .vote:
      guard let user else { throw needsLogin }
      let fact = try factID(arguments)
      guard let vote = arguments["vote"]?.text.lowercased(), let vote = ToyVote(vote) else {
        throw .invalid(argument: "vote", "a vote is up, down or clear")
      }
      if voting.isFull { throw .refused(code: "busy", "a thousand votes wait for the server already: vote again when it answers") }
      voting.add(ToyPendingVote(server: settings.server, user: user.id, fact: fact, vote: vote), for: id, &effects)
      if nextSign == nil { nextSign = now &+ 5 * .second }
      publishVotes(&effects)
    case .wifi:
      guard let user else { throw needsLogin }
      if setup != nil { throw .refused(code: "busy", "the toy's Wi-Fi is being set already: wait for that, or end it with Ctrl-C") }
      let given = try ToyCredentials(user: user.id, ssid: arguments["ssid"]?.text ?? "", password: arguments["password"]?.text ?? "")
      setup = ToySetup(
        id, given, dial: try arguments["dial"].map { value throws(CommandError) in try place(value) }, settings, at: now, &effects)
    }
  }

  // MARK: Arguments

  private func text(_ name: String, _ arguments: [String: Value], _ length: ClosedRange<Int>) throws(CommandError) -> String {
    let text = arguments[name]?.text ?? ""
    guard length.contains(text.unicodeScalars.count), visible(text, limit: length.upperBound) == text else {
      throw .invalid(argument: name, "it has \(length.lowerBound) to \(length.upperBound) characters, and none that cannot be seen")
    }
    return text
  }

  private func email(_ arguments: [String: Value]) throws(CommandError) -> String {
    let email = try text("email", arguments, 3...50)
    guard email.split(separator: "@", omittingEmptySubsequences: false).count == 2, !email.contains(" "), email.first != "@",
      email.last != "@"
    else { throw .invalid(argument: "email", "that is no e-mail address; write one, as in you@example.org") }
    return email
  }

  private func password(_ arguments: [String: Value]) throws(CommandError) -> String {
    guard let password = arguments["password"]?.text, !password.isEmpty, password.utf8.count <= 200 else {
      throw .invalid(argument: "password", "a password has 1 to 200 bytes")
    }
    return password
  }

  private func factID(_ arguments: [String: Value]) throws(CommandError) -> Int {
    guard case .int(let id)? = arguments["id"], id > 0 else {
      throw .invalid(argument: "id", "a fact's number is 1 or more; vehiclectl toy history lists them")
    }
    return id
  }

  private func place(_ value: Value) throws(CommandError) -> String {
    let parts = value.text.split(separator: ":", omittingEmptySubsequences: false)
    let port = parts.count == 1 ? 8080 : parts.count == 2 ? UInt16(parts[1]) ?? 0 : 0
    guard port > 0, let host = parts.first, !host.contains("/"), (try? IPv4Network(String(host))) != nil else {
      throw .invalid(argument: "dial", "that is no address; write it, or ADDRESS:PORT, as in 192.168.4.1")
    }
    // Whoever answers elsewhere would be told the password.
    guard settings.network.contains(String(host)) else {
      throw .invalid(argument: "dial", "\(host) is not of the toy's network, \(settings.network); join that, or set toy-network")
    }
    return "\(host):\(port)"
  }

  /// Of two who log in at once, nobody could tell who it is afterwards.
  private func beAlone() throws(CommandError) {
    let isBusy = asked.values.contains {
      switch $0 {
      case .register, .login: true
      case .history, .vote: false
      }
    }
    if isBusy || storing.contains(where: { $0.key == Self.sessionKey }) {
      throw .refused(code: "busy", "somebody is just logging in: try again in a moment")
    }
  }

  // MARK: Answers

  mutating func answered(_ request: RequestID, _ response: HTTPResponse, at now: Instant, _ effects: inout Effects) {
    guard let question = asked.removeValue(forKey: request) else { return }
    do throws(ToyTrouble) {
      switch question {
      case .register(let id, let name, let email):
        var user = try ToyAnswer.user(response, isNew: true)
        (user.name, user.email) = (user.name ?? name, user.email ?? email)
        logIn(user, isNew: true, "registered, and logged in as user \(user.id)", id, &effects)
      case .login(let id, let email):
        var user = try ToyAnswer.user(response, isNew: false)
        user.email = user.email ?? email
        logIn(user, isNew: false, "logged in as user \(user.id)" + (user.name.map { ", \($0)" } ?? ""), id, &effects)
      case .history(let id, let user, let fact):
        let history = try ToyAnswer.history(response, of: user)
        if user == self.user?.id {
          (self.history, historyCame) = (history, now)
          publishFacts(at: now, &effects)
          effects.append(.tellTime)
        }
        tell(history, fact, to: id, note: nil, &effects)
      case .vote(let vote): voted(try ToyAnswer.voted(response, vote), vote, &effects)
      }
      voting.serverAnswers()
    } catch {
      failed(question, error, at: now, &effects)
    }
  }

  private mutating func failed(_ question: Asked, _ trouble: ToyTrouble, at now: Instant, _ effects: inout Effects) {
    switch question {
    case .register(let id, _, _), .login(let id, _): fail(id, .refused(code: trouble.code, trouble.words), &effects)
    case .history(let id, let user, let fact):
      guard trouble.isPassing, let history, history.user == user else {
        return fail(id, .refused(code: trouble.code, trouble.words), &effects)
      }
      let age = DayClock.age((now &- historyCame) / .microsecond)
      tell(history, fact, to: id, note: "as of \(age) ago: \(trouble.words)", &effects)
    case .vote(let vote):
      if trouble.isPassing {
        let words = "kept, and sent when the server answers: \(trouble.words)"
        for id in voting.postpone(trouble, at: now) { effects.append(.complete(id, .success(Report(text: words)))) }
        return effects.publish(.lastVote, .string("fact \(vote.fact): \(vote.vote.word), \(words)"))
      }
      let caller = voting.settle(&effects)
      publishVotes(&effects)
      effects.publish(.lastVote, .string("fact \(vote.fact): \(trouble.words)"))
      if let caller {
        fail(caller, .refused(code: trouble.code, trouble.words), &effects)
      } else {
        effects.append(.event(name: "vote", text: "a vote that waited came to nothing: \(trouble.words)"))
      }
    }
  }

  private func tell(_ history: ToyHistory, _ fact: Int?, to id: CommandID, note: String?, _ effects: inout Effects) {
    var facts = history.facts
    for vote in voting.live {
      for place in facts.indices where facts[place].id == vote.fact { facts[place].vote = vote.vote }
    }
    if let fact {
      facts = facts.filter { $0.id == fact }
      if facts.isEmpty {
        let words = "fact \(fact) is not among those that the toy has played" + (note.map { " (\($0))" } ?? "")
        return fail(id, .refused(code: "not-heard", words), &effects)
      }
    }
    effects.append(.complete(id, .success(Report(text: note, columns: ToyFact.columns, rows: facts.map(\.row)))))
  }

  // MARK: Who it is

  private mutating func logIn(_ new: ToyUser, isNew: Bool, _ words: String, _ id: CommandID, _ effects: inout Effects) {
    var new = new
    new.server = settings.server
    // A server that was made anew may give a number again.
    if isNew || new.id != user?.id { forgetHistory(&effects) }
    user = new
    storing.append((Self.sessionKey, id, Report(text: words)))
    effects.append(.store(key: Self.sessionKey, new.bytes))
    changeOwner(&effects)
  }

  private mutating func changeOwner(_ effects: inout Effects) {
    // A vote that is on its way ends when it is answered, or is sent once more by whoever gave it.
    if !voting.belongs(to: user, at: settings.server) {
      asked = asked.filter { if case .vote = $0.value { false } else { true } }
      for caller in voting.callers {
        effects.append(.complete(caller, .success(Report(text: "kept, and sent when you are logged in again: somebody else is now"))))
      }
      voting.forgetCallers()
    }
    voting.change(owner: user, at: settings.server)
    publishUser(&effects)
    publishVotes(&effects)
    tellHeld(&effects)
  }

  private mutating func logOut(_ id: CommandID, drop: Bool, _ effects: inout Effects) throws(CommandError) {
    guard user != nil else { throw needsLogin }
    try beAlone()
    let count = voting.live.count
    guard count == 0 || drop else {
      let words = count == 1 ? "a vote is not sent yet" : "\(count) votes are not sent yet"
      throw .refused(code: "votes-wait", "\(words): log out when the server answers, or forget them with --drop-votes")
    }
    if count > 0 {
      for caller in voting.drop(&effects) { fail(caller, .refused(code: "dropped", "the vote was forgotten: somebody logs out"), &effects) }
    }
    user = nil
    forgetHistory(&effects)
    changeOwner(&effects)
    storing.append((Self.sessionKey, id, Report(text: "logged out")))
    effects.append(.store(key: Self.sessionKey, []))
  }

  private mutating func forgetHistory(_ effects: inout Effects) {
    guard history != nil else { return }
    history = nil
    effects.append(.store(key: Self.historyKey, []))
    publishFacts(at: 0, &effects)
  }

  // MARK: Votes

  /// Sends the first vote that waits, if it is time.
  mutating func vote(at now: Instant, _ effects: inout Effects) {
    guard let due = voting.due, now >= due, let vote = voting.first else { return }
    let isVoting = asked.values.contains { if case .vote = $0 { true } else { false } }
    guard !isVoting else { return }
    ask(.vote(vote, token: user?.id == vote.user ? user?.token : nil), as: .vote(vote), at: now, &effects)
  }

  private mutating func voted(_ result: ToyVoted, _ vote: ToyPendingVote, _ effects: inout Effects) {
    let words: String
    switch result {
    case .wasSo: words = "fact \(vote.fact): already voted that way"
    case .counted(let fact):
      words = fact.standing
      if let place = history?.facts.firstIndex(where: { $0.id == fact.id }), history?.user == vote.user {
        history?.facts[place] = fact
        if history?.time != nil, let bytes = history?.bytes { effects.append(.store(key: Self.historyKey, bytes)) }
      }
    }
    let caller = voting.settle(&effects)
    publishVotes(&effects)
    effects.publish(.lastVote, .string(words))
    if let caller {
      effects.append(.complete(caller, .success(Report(text: words))))
    } else {
      effects.append(.event(name: "vote", text: "a vote that waited was sent: \(words)"))
    }
  }

  // MARK: The disk and the clock

  /// The history that just came is of this moment.
  mutating func told(_ wall: WallTime, _ effects: inout Effects) {
    guard history != nil, history?.time == nil else { return }
    history?.time = wall.microseconds
    if let bytes = history?.bytes { effects.append(.store(key: Self.historyKey, bytes)) }
  }

  mutating func stored(_ key: String, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    if key == ToyVoting.key {
      for id in voting.stored(failure) { fail(id, .refused(code: "not-kept", failure ?? ""), &effects) }
      return publishVotes(&effects)
    }
    guard let place = storing.firstIndex(where: { $0.key == key }) else { return }
    let (_, id, report) = storing.remove(at: place)
    guard let failure else { return effects.append(.complete(id, .success(report))) }
    fail(id, .refused(code: "not-kept", "\(report.text ?? ""), but with the next start it is as it was before: \(failure)"), &effects)
  }

  // MARK: The toy's Wi-Fi

  /// An attempt has ended, if it has.
  mutating func end(_ outcome: ToySetup.Outcome?, _ effects: inout Effects) {
    guard let outcome, let ended = setup else { return }
    (setup, setupEnd) = (nil, outcome == .sent ? "sent" : "idle")
    effects.append(.closeLink(ToySetup.link))
    switch outcome {
    case .sent:
      effects.append(.event(name: "wifi", text: "the toy was told its network"))
      effects.append(.complete(ended.command, .success(Report(text: ended.farewell, progress: 1))))
    case .failed(let error): fail(ended.command, error, &effects)
    }
  }
}
