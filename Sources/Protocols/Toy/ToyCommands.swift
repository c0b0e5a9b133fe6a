// What a person can want of a toy: their words are checked before the server hears of them, and who is not logged in is told how.

extension ToyMachine {
  /// Histories that are asked for, read and told at once.
  private static let maxReading = 4

  var needsLogin: CommandError {
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
      let facts = history.map { String($0.total) } ?? ""
      let report = Report(columns: ["id", "name", "email", "facts"], rows: [[String(user.id), user.name ?? "", user.email ?? "", facts]])
      effects.append(.complete(id, .success(report)))
    case .history, .fact:
      guard let user else { throw needsLogin }
      var fact: Int?
      if action == .fact { fact = try factID(arguments) }
      // Each may bring megabytes.
      let reading = asked.values.count { if case .history = $0 { true } else { false } } + long.count
      if reading >= Self.maxReading { throw .refused(code: "busy", "the facts are being read already: try again in a moment") }
      ask(.history(user), as: .history(id, user: user.id, fact: fact), at: now, &effects)
    case .vote:
      guard let user else { throw needsLogin }
      let fact = try factID(arguments)
      guard let vote = arguments["vote"]?.text.lowercased(), let vote = ToyVote(vote) else {
        throw .invalid(argument: "vote", "a vote is up, down or none")
      }
      if voting.isFull { throw .refused(code: "busy", "a thousand votes wait for the server already: vote again when it answers") }
      voting.add(ToyPendingVote(server: settings.server, user: user.id, fact: fact, vote: vote), for: id, &effects)
      if nextSign == nil { nextSign = now &+ 5 * .second }
      publishVotes(&effects)
    case .votes: try votes(arguments["forget"]?.text, for: id, &effects)
    case .wifi:
      guard let user else { throw needsLogin }
      if setup != nil { throw .refused(code: "busy", "the toy's Wi-Fi is being set already: wait for that, or end it with Ctrl-C") }
      let given = try ToyCredentials(user: user.id, ssid: arguments["ssid"]?.text ?? "", password: arguments["password"]?.text ?? "")
      setup = ToySetup(
        id, given, dial: try arguments["dial"].map { value throws(CommandError) in try place(value) }, settings, at: now, &effects)
    }
  }

  /// Lists them, or forgets some first.
  private mutating func votes(_ forget: String?, for id: CommandID, _ effects: inout Effects) throws(CommandError) {
    guard let forget else { return effects.append(.complete(id, .success(pendingVotes()))) }
    let isChosen: (ToyPendingVote, Bool) -> Bool
    switch forget.lowercased() {
    case "all": isChosen = { _, _ in true }
    case "held": isChosen = { !$1 }
    default:
      guard let fact = Int(forget), fact > 0 else {
        throw .invalid(argument: "forget", "give a fact's number, held (those of others), or all")
      }
      isChosen = { vote, _ in vote.fact == fact }
    }
    let count = dropVotes("somebody had it forgotten", &effects, where: isChosen)
    guard count > 0 else { throw .refused(code: "no-vote", "no such vote waits: vehiclectl toy votes lists them") }
    let words = count == 1 ? "a vote is forgotten" : "\(count) votes are forgotten"
    storing.append((ToyVoting.key, id, Report(text: words)))
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
  func beAlone() throws(CommandError) {
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
}
