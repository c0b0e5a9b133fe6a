// The `toy` machine: sends the owner's commands to the toy's web server, one request per command, and sets up the toy's Wi-Fi. The user,
// the facts and pending votes are stored; a password exists only in the request that carries it. No request is made without a command or a
// pending vote.
// Source: neils95/Trivio, microprocessor.ino, Server/Trivio, and the Android app.

/// Executes the commands of a Trivia toy's owner.
public struct ToyMachine: Machine {
  /// A request in flight, and its command.
  enum PendingRequest: Sendable {
    case register(CommandID, name: String, email: String)
    case login(CommandID, email: String)
    /// A request for the history; `fact` is the requested fact, nil for all.
    case history(CommandID, user: Int, fact: Int?)
    case vote(ToyPendingVote)

    var command: CommandID? {
      switch self {
      case .register(let id, _, _), .login(let id, _), .history(let id, _, _): id
      case .vote: nil
      }
    }
  }

  public let schema = Schema(properties: ToyProperty.properties, actions: ToyAction.actions)
  let settings: ToySettings
  var pendingRequests: [RequestID: PendingRequest] = [:]
  var lastRequestID: RequestID = 0
  var user: ToyUser?
  var history: ToyHistory?
  /// The long histories that are being read or sent in pieces, beginning with the current one.
  var longHistories: [ToyLongHistory] = []
  /// When the history was received, on the monotonic clock.
  var historyReceivedAt: Instant = 0
  var voting = ToyVoting()
  var setup: ToySetup?
  /// Commands that complete when their change is stored, and their replies.
  var storing: [(key: String, command: CommandID, report: Report)] = []
  /// When waiting commands get their next progress report: clients time out after ten seconds without one.
  var nextProgress: Instant?
  var isStopped = false
  /// The published state after the end of the last Wi-Fi setup: `sent` or `idle`.
  var setupResult = "idle"
  private var publishedSetupState = ""

  static let sessionKey = "session"
  static let historyKey = "history"
  private static let progressPeriod: Nanoseconds = 5 * .second

  init(_ settings: ToySettings) { self.settings = settings }

  public var nextWake: Instant? {
    if isStopped { return nil }
    if !longHistories.isEmpty { return .min }
    let isVoting = pendingRequests.values.contains { if case .vote = $0 { true } else { false } }
    return [nextProgress, setup?.nextWake, isVoting ? nil : voting.due].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall): start(restored, wall, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .response(let id, let response): handleResponse(id, response, at: now, &effects)
    case .time(let wall): updateClock(wall, &effects)
    case .stored(let key, let failure): stored(key, failure, at: now, &effects)
    case .cancelled(let id): cancel(id, &effects)
    case .linkChanged(ToySetup.link, .up): setup?.linkUp(at: now, &effects)
    case .linkChanged(ToySetup.link, .refused(let description)): setup?.peerRejected(description)
    case .linkChanged(ToySetup.link, .down(let reason)): endSetup(setup?.linkDown(reason), &effects)
    case .received(ToySetup.link, let bytes): setup?.received(bytes, at: now, &effects)
    case .stopping: stop(&effects)
    case .wake: readNextPiece(at: now, &effects)
    case .linkChanged, .received, .sent, .observed, .rows, .leaseBegan, .leaseEnded: break
    }
    if isStopped { return }
    endSetup(setup?.advance(at: now, &effects), &effects)
    sendNextVote(at: now, &effects)
    if let moment = nextProgress, now >= moment { reportProgress(at: now, &effects) }
    publishState(&effects)
  }

  // MARK: Start and end

  private mutating func start(_ restored: [String: [UInt8]], _ wall: WallTime, at now: Instant, _ effects: inout Effects) {
    var damaged: [String] = []
    func read<Stored>(_ key: String, _ read: ([UInt8]) -> Stored?) -> Stored? {
      guard let bytes = restored[key] else { return nil }
      let stored = read(bytes)
      if stored == nil { damaged.append(key) }
      return stored
    }
    user = read(Self.sessionKey) { JSONNode(untrusted: $0).flatMap(ToyUser.init) }
    history = read(Self.historyKey) { ToyHistory(stored: $0) }
    if let time = history?.time {
      let age = wall.microseconds.subtractingReportingOverflow(time)
      historyReceivedAt = now &- (age.overflow ? 0 : min(max(age.partialValue, 0), 1 << 50) * .microsecond)
    }
    if let bytes = restored[ToyVoting.key], !voting.restore(bytes) {
      damaged.append(ToyVoting.key)
      // Keep the damaged file for inspection.
      effects.append(.store(key: ToyVoting.key + "-damaged", bytes))
    }
    // User numbers differ between servers, and a server must not receive another server's token.
    if let known = user, known.server != settings.server {
      effects.append(.event(name: "server-mismatch", text: "user \(known.id) belongs to another server: log in to the configured one"))
      user = nil
    }
    if history?.user != user?.id { history = nil }
    voting.change(owner: user, at: settings.server)
    reportHeld(&effects)
    if !damaged.isEmpty { effects.append(.event(name: "state-corrupt", text: damagedSettingsMessage(damaged))) }
    isStopped = false
    publishUser(&effects)
    publishFacts(at: now, &effects)
    publishVotes(&effects)
    effects.withdraw(.lastVote, "none since the device was started")
    effects.withdraw(.category, "not supported by the toy: it plays any fact")
    publishState(&effects)
  }

  private mutating func stop(_ effects: inout Effects) {
    isStopped = true
    endSetup(.failed(.notConnected("the device is being stopped")), &effects)
    for id in callers { fail(id, .notConnected("the device is being stopped"), &effects) }
    for (_, id, report) in storing { effects.append(.complete(id, .success(report))) }
    (pendingRequests, storing, longHistories) = ([:], [], [])
    voting.removeAllCallers()
    nextProgress = nil
    effects.append(.stopped)
  }

  private mutating func cancel(_ id: CommandID, _ effects: inout Effects) {
    if setup?.command == id {
      (setup, setupResult) = (nil, setup?.hasSentCredentials == true ? "sent" : "idle")
      effects.append(.closeLink(ToySetup.link))
    }
    voting.cancel(id)
    storing.removeAll { $0.command == id }
    longHistories.removeAll { $0.command == id }
    // A request in flight cannot be cancelled; its response is ignored.
    for (request, pending) in pendingRequests where pending.command == id { pendingRequests[request] = nil }
  }

  // MARK: Waiting commands

  func fail(_ id: CommandID, _ error: CommandError, _ effects: inout Effects) { effects.append(.complete(id, .failure(error))) }

  /// The commands that wait for the server, or for its history.
  private var callers: [CommandID] { pendingRequests.values.compactMap(\.command) + longHistories.map(\.command) + voting.callers }

  private mutating func reportProgress(at now: Instant, _ effects: inout Effects) {
    let waiting = callers
    nextProgress = waiting.isEmpty ? nil : now &+ Self.progressPeriod
    for id in waiting.sorted() { effects.append(.progress(id, Report(text: "waiting for \(settings.host)"))) }
  }

  mutating func send(_ call: ToyCall, as pending: PendingRequest, at now: Instant, _ effects: inout Effects) {
    lastRequestID &+= 1
    pendingRequests[lastRequestID] = pending
    if nextProgress == nil { nextProgress = now &+ Self.progressPeriod }
    effects.append(.request(lastRequestID, call.request(settings)))
  }

  // MARK: Published values

  func publishUser(_ effects: inout Effects) {
    let reason = "not logged in: vehiclectl toy login EMAIL"
    if let user { effects.publish(.userID, .int(user.id)) } else { effects.withdraw(.userID, reason) }
    if let name = user?.name, !name.isEmpty {
      effects.publish(.name, .string(name))
    } else {
      effects.withdraw(.name, user == nil ? reason : "not reported by the server")
    }
  }

  func publishFacts(at now: Instant, _ effects: inout Effects) {
    guard let history else { return effects.withdraw(.facts, "not read yet: vehiclectl toy history") }
    effects.publish(.facts, .int(history.total), age: max(0, now &- historyReceivedAt))
  }

  static func pendingVotesText(_ count: Int) -> String { count == 1 ? "1 pending vote" : "\(count) pending votes" }

  /// Reports the number of votes that are held for other users.
  func reportHeld(_ effects: inout Effects) {
    guard voting.held > 0 else { return }
    let message = "\(Self.pendingVotesText(voting.held)) of other users or servers: held until that user logs in to that server again"
    effects.append(.event(name: "votes-held", text: message))
  }

  func publishVotes(_ effects: inout Effects) { effects.publish(.pendingVotes, .int(voting.votesOfUser.count)) }

  private mutating func publishState(_ effects: inout Effects) {
    let isRefused = voting.error?.code == .needsLogin
    let stateName =
      setup != nil ? "setting-up" : user == nil || isRefused ? "logged-out" : voting.error != nil ? "offline" : "ready"
    effects.append(.status(stateName))
    effects.append(.fault(voting.waiting.map { "\(Self.pendingVotesText($0.count)): \($0.error.message)" }))
    let setupState = setup?.stateName ?? setupResult
    if setupState != publishedSetupState { effects.publish(.setup, .string(setupState)) }
    publishedSetupState = setupState
  }
}
