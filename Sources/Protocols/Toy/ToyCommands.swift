// The commands of a toy. Arguments are validated before a request is made.

extension ToyMachine {
  /// The maximum number of histories that are read at the same time.
  private static let maxHistoriesRead = 4

  var needsLogin: CommandError {
    .refused(code: .needsLogin, "not logged in: vehiclectl toy login EMAIL, or vehiclectl toy register NAME EMAIL")
  }

  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    do throws(CommandError) {
      guard case .run(let index, let arguments) = command, let action = ToyAction(rawValue: index) else {
        throw .refused(code: .readOnly, "the property is read-only")
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
      try requireNoLogin()
      send(
        .register(name: name, email: email, password: try password(arguments)), as: .register(id, name: name, email: email), at: now,
        &effects)
    case .login:
      let email = try email(arguments)
      try requireNoLogin()
      send(.login(email: email, password: try password(arguments)), as: .login(id, email: email), at: now, &effects)
    case .logout: try logOut(id, deletingVotes: arguments["delete-votes"] == .bool(true), &effects)
    case .whoami:
      guard let user else { throw needsLogin }
      let facts = history.map { String($0.total) } ?? ""
      let report = Report(columns: ["id", "name", "email", "facts"], rows: [[String(user.id), user.name ?? "", user.email ?? "", facts]])
      effects.append(.complete(id, .success(report)))
    case .history, .fact:
      guard let user else { throw needsLogin }
      var fact: Int?
      if action == .fact { fact = try factID(arguments) }
      // A history can be several megabytes long.
      let count = pendingRequests.values.count { if case .history = $0 { true } else { false } } + longHistories.count
      if count >= Self.maxHistoriesRead { throw .refused(code: .busy, "the history is already being read: try again in a moment") }
      send(.history(user), as: .history(id, user: user.id, fact: fact), at: now, &effects)
    case .vote:
      guard let user else { throw needsLogin }
      let fact = try factID(arguments)
      guard let vote = arguments["vote"]?.text.lowercased(), let vote = ToyVote(vote) else {
        throw .invalid(argument: "vote", "must be up, down or none")
      }
      if voting.isFull { throw .refused(code: .busy, "too many pending votes: vote again when the server responds") }
      voting.add(ToyPendingVote(server: settings.server, user: user.id, fact: fact, vote: vote), for: id, &effects)
      if nextProgress == nil { nextProgress = now &+ 5 * .second }
      publishVotes(&effects)
    case .votes: try listOrDeleteVotes(deleting: arguments["delete"]?.text, for: id, &effects)
    case .wifi:
      guard let user else { throw needsLogin }
      if setup != nil { throw .refused(code: .busy, "the toy's Wi-Fi setup is already running: wait for it, or end it with Ctrl-C") }
      let credentials = try ToyCredentials(user: user.id, ssid: arguments["ssid"]?.text ?? "", password: arguments["password"]?.text ?? "")
      let toyAddress = try arguments["dial"].map { value throws(CommandError) in try address(value) }
      setup = ToySetup(id, credentials, toyAddress: toyAddress, settings, at: now, &effects)
    }
  }

  /// Lists the pending votes, or deletes the chosen ones.
  private mutating func listOrDeleteVotes(deleting chosen: String?, for id: CommandID, _ effects: inout Effects) throws(CommandError) {
    guard let chosen else { return effects.append(.complete(id, .success(pendingVotes()))) }
    let isChosen: (ToyPendingVote, Bool) -> Bool
    switch chosen.lowercased() {
    case "all": isChosen = { _, _ in true }
    case "held": isChosen = { !$1 }
    default:
      guard let fact = Int(chosen), fact > 0 else {
        throw .invalid(argument: "delete", "must be a fact's number, held (votes of other users or servers), or all")
      }
      isChosen = { vote, _ in vote.fact == fact }
    }
    let count = deleteVotes("requested by a client", &effects, where: isChosen)
    if count == 0, Int(chosen) == nil { return effects.append(.complete(id, .success(Report(text: "no pending votes")))) }
    guard count > 0 else { throw .refused(code: .noVote, "no such pending vote: run \"vehiclectl toy votes\" for a list") }
    let message = count == 1 ? "1 vote deleted" : "\(count) votes deleted"
    storing.append((ToyVoting.key, id, Report(text: message)))
  }

  // MARK: Arguments

  private func text(_ name: String, _ arguments: [String: Value], _ length: ClosedRange<Int>) throws(CommandError) -> String {
    let text = arguments[name]?.text ?? ""
    guard length.contains(text.unicodeScalars.count), visible(text, limit: length.upperBound) == text else {
      throw .invalid(argument: name, "must have \(length.lowerBound) to \(length.upperBound) visible characters")
    }
    return text
  }

  private func email(_ arguments: [String: Value]) throws(CommandError) -> String {
    let email = try text("email", arguments, 3...50)
    guard email.split(separator: "@", omittingEmptySubsequences: false).count == 2, !email.contains(" "), email.first != "@",
      email.last != "@"
    else { throw .invalid(argument: "email", "not an e-mail address; write one, as in you@example.org") }
    return email
  }

  private func password(_ arguments: [String: Value]) throws(CommandError) -> String {
    guard let password = arguments["password"]?.text, !password.isEmpty, password.utf8.count <= 200 else {
      throw .invalid(argument: "password", "must have 1 to 200 bytes")
    }
    return password
  }

  private func factID(_ arguments: [String: Value]) throws(CommandError) -> Int {
    guard case .int(let id)? = arguments["id"], id > 0 else {
      throw .invalid(argument: "id", "must be 1 or more; run \"vehiclectl toy history\" for a list")
    }
    return id
  }

  private func address(_ value: Value) throws(CommandError) -> String {
    let parts = value.text.split(separator: ":", omittingEmptySubsequences: false)
    let port = parts.count == 1 ? 8080 : parts.count == 2 ? UInt16(parts[1]) ?? 0 : 0
    guard port > 0, let host = parts.first, !host.contains("/"), (try? IPv4Network(String(host))) != nil else {
      throw .invalid(argument: "dial", "not an address; write ADDRESS or ADDRESS:PORT, as in 192.168.4.1")
    }
    // A peer outside the toy's network must not receive the password.
    guard settings.network.contains(String(host)) else {
      throw .invalid(argument: "dial", "\(host) is not in the toy's network \(settings.network); join that network, or set toy-network")
    }
    return "\(host):\(port)"
  }

  /// Throws if a login is in progress. Only one login is allowed at a time, so that the resulting user is unambiguous.
  func requireNoLogin() throws(CommandError) {
    let isBusy = pendingRequests.values.contains {
      switch $0 {
      case .register, .login: true
      case .history, .vote: false
      }
    }
    if isBusy || storing.contains(where: { $0.key == Self.sessionKey }) {
      throw .refused(code: .busy, "another login is in progress: try again in a moment")
    }
  }
}
