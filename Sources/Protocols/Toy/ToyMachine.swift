// The `toy` machine: what its owner wants of the toy's web server, one question at a time for each command, and the setting of its
// Wi-Fi. Who is logged in, the facts and the votes that wait outlive the daemon; a password is in no state of it, only in the request
// that carries it. Nothing is asked that nobody wants: the server hears of us when a person does something, or a vote waits.
// Facts: protocols of the Trivia toy, §A, §B, §E.

/// Speaks for the owner of a Trivia toy.
public struct ToyMachine: Machine {
  /// What was asked, and who waits.
  enum Asked: Sendable {
    case register(CommandID, name: String, email: String)
    case login(CommandID, email: String)
    /// All facts, or one.
    case history(CommandID, user: Int, fact: Int?)
    case vote(ToyPendingVote)

    var command: CommandID? {
      switch self {
      case .register(let id, _, _), .login(let id, _), .history(let id, _, _): id
      case .vote: nil
      }
    }
  }

  public let schema = Schema(properties: ToySignal.properties, actions: ToyAction.actions)
  let settings: ToySettings
  var asked: [RequestID: Asked] = [:]
  var lastRequest: RequestID = 0
  var user: ToyUser?
  var history: ToyHistory?
  /// Histories that are read or told in pieces, the first of them now.
  var long: [ToyLongHistory] = []
  /// When the history was told, on the machines' clock.
  var historyCame: Instant = 0
  var voting = ToyVoting()
  var setup: ToySetup?
  /// Commands that are done once the disk has what they changed, and what they are told then.
  var storing: [(key: String, command: CommandID, report: Report)] = []
  /// When those who wait are told that it goes on: a caller gives up after ten seconds of silence.
  var nextSign: Instant?
  var isStopped = false
  /// How the last setting of the Wi-Fi has ended.
  var setupEnd = "idle"
  private var shown: (word: String, fault: String?, setup: String) = ("", nil, "")

  static let sessionKey = "session"
  static let historyKey = "history"
  private static let signPeriod: Nanoseconds = 5 * .second

  init(_ settings: ToySettings) { self.settings = settings }

  public var nextWake: Instant? {
    if isStopped { return nil }
    if !long.isEmpty { return .min }
    let isVoting = asked.values.contains { if case .vote = $0 { true } else { false } }
    return [nextSign, setup?.nextWake, isVoting ? nil : voting.due].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall): start(restored, wall, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .response(let id, let response): answered(id, response, at: now, &effects)
    case .time(let wall): told(wall, &effects)
    case .stored(let key, let failure): stored(key, failure, at: now, &effects)
    case .cancelled(let id): cancel(id, &effects)
    case .linkChanged(ToySetup.link, .up): setup?.linkCameUp(at: now, &effects)
    case .linkChanged(ToySetup.link, .refused(let whom)): setup?.refused(whom)
    case .linkChanged(ToySetup.link, .down(let reason)): end(setup?.linkWentDown(reason), &effects)
    case .received(ToySetup.link, let bytes): setup?.received(bytes, at: now, &effects)
    case .stopping: stop(&effects)
    case .wake: readOn(at: now, &effects)
    case .linkChanged, .received, .sent, .observed, .rows, .leaseBegan, .leaseEnded: break
    }
    if isStopped { return }
    end(setup?.advance(at: now, &effects), &effects)
    vote(at: now, &effects)
    if let moment = nextSign, now >= moment { giveSign(at: now, &effects) }
    tellStanding(&effects)
  }

  // MARK: Beginning and end

  private mutating func start(_ restored: [String: [UInt8]], _ wall: WallTime, at now: Instant, _ effects: inout Effects) {
    var damaged: [String] = []
    func read<Kept>(_ key: String, _ read: ([UInt8]) -> Kept?) -> Kept? {
      guard let bytes = restored[key] else { return nil }
      let kept = read(bytes)
      if kept == nil { damaged.append(key) }
      return kept
    }
    user = read(Self.sessionKey) { JSONNode(foreign: $0).flatMap(ToyUser.init) }
    history = read(Self.historyKey) { ToyHistory(kept: $0) }
    if let time = history?.time {
      let age = wall.microseconds.subtractingReportingOverflow(time)
      historyCame = now &- (age.overflow ? 0 : min(max(age.partialValue, 0), 1 << 50) * .microsecond)
    }
    if let bytes = restored[ToyVoting.key], !voting.restore(bytes) {
      damaged.append(ToyVoting.key)
      // The next vote takes the place of what nobody else has.
      effects.append(.store(key: ToyVoting.key + "-damaged", bytes))
    }
    // Another server knows others by these numbers, and is not told what this one has given us.
    if let known = user, known.server != settings.server {
      effects.append(.event(name: "server", text: "another server is configured than user \(known.id) is of: log in there"))
      user = nil
    }
    if history?.user != user?.id { history = nil }
    voting.change(owner: user, at: settings.server)
    tellHeld(&effects)
    if !damaged.isEmpty { effects.append(.event(name: "damaged", text: keptWords(damaged))) }
    isStopped = false
    publishUser(&effects)
    publishFacts(at: now, &effects)
    publishVotes(&effects)
    effects.withdraw(.lastVote, "there was none since the device was started")
    effects.withdraw(.category, "the toy knows no categories: it plays any fact")
    tellStanding(&effects)
  }

  private mutating func stop(_ effects: inout Effects) {
    isStopped = true
    end(.failed(.notConnected("the device is being stopped")), &effects)
    for id in callers { fail(id, .notConnected("the device is being stopped"), &effects) }
    for (_, id, report) in storing { effects.append(.complete(id, .success(report))) }
    (asked, storing, long) = ([:], [], [])
    voting.forgetCallers()
    nextSign = nil
    effects.append(.stopped)
  }

  private mutating func cancel(_ id: CommandID, _ effects: inout Effects) {
    if setup?.command == id {
      (setup, setupEnd) = (nil, setup?.hasTold == true ? "sent" : "idle")
      effects.append(.closeLink(ToySetup.link))
    }
    voting.forget(id)
    storing.removeAll { $0.command == id }
    long.removeAll { $0.command == id }
    // The question is out; its answer is nobody's.
    for (request, question) in asked where question.command == id { asked[request] = nil }
  }

  // MARK: Who waits

  func fail(_ id: CommandID, _ error: CommandError, _ effects: inout Effects) { effects.append(.complete(id, .failure(error))) }

  /// Who waits for the server, or for what it told.
  private var callers: [CommandID] { asked.values.compactMap(\.command) + long.map(\.command) + voting.callers }

  private mutating func giveSign(at now: Instant, _ effects: inout Effects) {
    let waiting = callers
    nextSign = waiting.isEmpty ? nil : now &+ Self.signPeriod
    for id in waiting.sorted() { effects.append(.progress(id, Report(text: "waiting for \(settings.host)"))) }
  }

  mutating func ask(_ call: ToyCall, as question: Asked, at now: Instant, _ effects: inout Effects) {
    lastRequest &+= 1
    asked[lastRequest] = question
    if nextSign == nil { nextSign = now &+ Self.signPeriod }
    effects.append(.request(lastRequest, call.request(settings)))
  }

  // MARK: What is shown

  func publishUser(_ effects: inout Effects) {
    let reason = "nobody is logged in: vehiclectl toy login EMAIL"
    if let user { effects.publish(.userID, .int(user.id)) } else { effects.withdraw(.userID, reason) }
    if let name = user?.name, !name.isEmpty {
      effects.publish(.name, .string(name))
    } else {
      effects.withdraw(.name, user == nil ? reason : "the server tells none")
    }
  }

  func publishFacts(at now: Instant, _ effects: inout Effects) {
    guard let history else { return effects.withdraw(.facts, "not asked yet: vehiclectl toy history") }
    effects.publish(.facts, .int(history.total), age: max(0, now &- historyCame))
  }

  static func waiting(_ count: Int) -> String { count == 1 ? "a vote waits" : "\(count) votes wait" }

  /// Names the votes that are not sent, for whoever should log in again.
  func tellHeld(_ effects: inout Effects) {
    guard voting.held > 0 else { return }
    let words = "\(Self.waiting(voting.held)) until whoever gave \(voting.held == 1 ? "it" : "them") is logged in again, at the same server"
    effects.append(.event(name: "votes-held", text: words))
  }

  func publishVotes(_ effects: inout Effects) { effects.publish(.pendingVotes, .int(voting.live.count)) }

  private mutating func tellStanding(_ effects: inout Effects) {
    let isRefused = voting.trouble?.code == "needs-login"
    let word =
      setup != nil ? "setting-up" : user == nil || isRefused ? "logged-out" : voting.trouble != nil ? "offline" : "ready"
    let fault = voting.waiting.map { "\(Self.waiting($0.count)): \($0.trouble.words)" }
    if word != shown.word { effects.append(.status(word)) }
    if fault != shown.fault { effects.append(.fault(fault)) }
    let setupWord = setup?.word ?? setupEnd
    if setupWord != shown.setup { effects.publish(.setup, .string(setupWord)) }
    shown = (word, fault, setupWord)
  }
}
