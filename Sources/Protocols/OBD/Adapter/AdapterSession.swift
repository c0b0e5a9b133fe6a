// The session with the adapter: setup, ECU addressing, voltage, low power, and the command in flight. Missing commands of a clone cost
// single features; silence and unreadable replies reset the link after three attempts. Failures never become values; they are counted.
//
//   down ─ link up ─▶ settingUp ─▶ ready ⇄ retargeting, identifyingProtocol, measuringVoltage
//                       ▲           ├─▶ enteringLowPower ─▶ lowPower ──┐
//                       │           └─▶ resting (the adapter failed) ──┤
//                       └──────────────────────────────────────────────┘  any state: link down ─▶ down, settings lost ─▶ settingUp

struct AdapterSession: Sendable {
  static let silence = "the adapter does not respond; check its power"
  static let nonsense = "the adapter's replies are unreadable; check baud rate and wiring"
  static let timeout: Nanoseconds = 5 * .second
  private static let noVoltage = "the adapter does not report it"
  private static let withoutExtendedKey = "no-stpx"
  private static let whichProtocol = Array("ATDPN\r".utf8)
  private static let voltage = Array("ATRV\r".utf8)
  private static let lowPower = Array("ATLP\r".utf8)
  /// A rejected setting stays rejected unless the adapter is replaced.
  private static let slowRetry: Nanoseconds = 60 * .second

  enum State: Sendable {
    /// No link, or one about to be reset: nothing is due.
    case down(String)
    /// This step of the setup is in flight or next.
    case settingUp(step: Int)
    /// Commands of the others are in flight or next.
    case ready
    case retargeting(Retargeting)
    /// The adapter has detected the protocol and is asked for it.
    case identifyingProtocol
    /// After a probe's measurement comes a request.
    case measuringVoltage(isProbe: Bool)
    case enteringLowPower(until: Instant)
    /// The adapter sleeps until then, or until a query.
    case lowPower(until: Instant)
    /// The adapter failed; it is reinitialised then.
    case resting(until: Instant, String)
  }

  private(set) var state = State.down("link not up yet")
  private(set) var dialogue = ELMDialogue()
  private var parser = ReplyParser()
  private(set) var traits = AdapterTraits()
  /// The current addressing; nil: the adapter must be retargeted first.
  private(set) var addressing: ECUAddressing?
  private(set) var setups: SetupAttempts
  private var unanswered = UnansweredCommands()
  /// The adapter was reinitialised on this link because its echo was on again.
  private var hasFollowedEcho = false
  /// The adapter of this name identifies as an STN chip but does not support STPX.
  private var withoutExtended: String?
  private var failures = FailureCounters()

  init(link: String = "") { setups = SetupAttempts(link: link) }

  // MARK: Link

  mutating func restore(_ stored: [String: [UInt8]]) {
    withoutExtended = stored[Self.withoutExtendedKey].map { String(decoding: $0, as: UTF8.self) }
    setups.restore(stored[LineSpeed.key])
  }

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    setups.linkCameUp(baud: baud, &effects)
    dialogue.reset()
    (traits, unanswered) = (AdapterTraits(), UnansweredCommands())
    hasFollowedEcho = false
    parser = ReplyParser()
    failures.reset()
    state = .settingUp(step: 0)
  }

  mutating func disconnect(_ reason: String) {
    state = .down(reason)
    dialogue.reset()
  }

  /// Switches to the next rate on the same link. Returns false if there is none.
  mutating func nextSpeed(_ effects: inout Effects) -> Bool {
    guard setups.nextSpeed(&effects) else { return false }
    dialogue.reset()
    return true
  }

  // MARK: Commands

  mutating func send(_ bytes: [UInt8], timeout: Nanoseconds = Self.timeout, at now: Instant, _ effects: inout Effects) {
    dialogue.begin(bytes, deadline: now &+ timeout)
    effects.send(.main, bytes)
  }

  /// Sends the next command of the present state, if that has one.
  mutating func sendNext(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .settingUp(let step): send(SetupStep.allCases[step].bytes + [carriageReturn], timeout: setups.timeout, at: now, &effects)
    case .retargeting(let retargeting): send(retargeting.command, at: now, &effects)
    case .identifyingProtocol: send(Self.whichProtocol, at: now, &effects)
    case .measuringVoltage: send(Self.voltage, at: now, &effects)
    case .enteringLowPower: send(Self.lowPower, at: now, &effects)
    case .down, .ready, .lowPower, .resting: break
    }
  }

  mutating func resynchronise(at now: Instant, _ effects: inout Effects) {
    dialogue.resynchronise(at: now)
    effects.send(.main, [space])
  }

  /// The adapter has found the vehicle's protocol: it is asked for it.
  mutating func identifyProtocol() { state = .identifyingProtocol }

  /// Measures the voltage; after a probe's measurement (`isProbe`) comes a request.
  mutating func measureVoltage(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    state = .measuringVoltage(isProbe: isProbe)
    sendNext(at: now, &effects)
  }

  mutating func enterLowPower(until: Instant) { state = .enteringLowPower(until: until) }

  mutating func rest(until: Instant, _ reason: String) { state = .resting(until: until, reason) }

  /// Everything from the reset on, after a space that wakes a sleeping adapter and stops a busy one.
  mutating func beginSetup(at now: Instant, _ effects: inout Effects) {
    traits = AdapterTraits(unanswered)
    addressing = nil
    failures.reset()
    state = .settingUp(step: 0)
    resynchronise(at: now, &effects)
  }

  // MARK: Replies

  mutating func receive(_ bytes: [UInt8], at now: Instant) -> ELMDialogue.Arrival {
    let arrival = dialogue.receive(bytes, at: now)
    if arrival.replied { unanswered.isAnswered(dialogue.command) }
    return arrival
  }

  /// Handles an expired deadline.
  mutating func expire(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch dialogue.expire(at: now) {
    case .nothing, .inStep: .none
    case .timedOut: timedOut(at: now, &values, &effects)
    case .neverQuiet: .gaveUp(Self.nonsense)
    }
  }

  /// Handles a complete reply.
  mutating func replied(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch state {
    case .retargeting, .identifyingProtocol, .measuringVoltage, .enteringLowPower:
      if let status = dialogue.restart { return lost(status, at: now, &values, &effects) }
    case .down, .resting, .lowPower, .ready, .settingUp: break
    }
    switch state {
    case .down, .resting, .lowPower: return .none
    case .ready: return .replied
    case .settingUp(let step): return setupReplied(SetupStep.allCases[step], at: now, &values, &effects)
    case .retargeting(let retargeting): return retargetReplied(retargeting, at: now, &values, &effects)
    case .identifyingProtocol:
      state = .ready
      return .identified(lines(of: dialogue.reply[dialogue.body...]).first.flatMap { VehicleBus(digits: $0) })
    case .measuringVoltage(let isProbe): return voltageReplied(isProbe: isProbe, &values, &effects)
    case .enteringLowPower(let until): return lowPowerReplied(until: until, &effects)
    }
  }

  /// Parses the reply to a poll (`learnsChecks`) or another request.
  mutating func parse(learnsChecks: Bool = false) -> CANReader.Outcome { parser.parse(dialogue, learnsChecks: learnsChecks) }

  /// The messages of the last parsed reply.
  var reader: CANReader { parser.reader }

  /// The adapter sent a status unasked: it restarted, or goes to sleep.
  mutating func heard(_ status: ELMStatus, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch state {
    // A banner before the reset is expected.
    case .down, .resting, .settingUp(step: 0), .enteringLowPower, .lowPower: .none
    case .settingUp: setups.failed(status.message, isSilent: false, at: now, &values, &effects)
    case .ready, .retargeting, .identifyingProtocol, .measuringVoltage: lost(status, at: now, &values, &effects)
    }
  }

  /// Takes what a reply of the vehicle has shown.
  mutating func take(_ reaction: Reaction, _ effects: inout Effects) {
    let notices = reaction.notices
    if notices.contains(.inStep) { dialogue.isInStep() }
    if notices.contains(.answered) { failures.reset() }
    if notices.contains(.replaced) { failures.resetUnusable() }
    if let bus = reaction.foundProtocol {
      addressing = ECUAddressing(bus: bus, target: .unaddressed, timing: addressing?.timing ?? .initial)
    }
    if notices.contains(.countsFrames) { traits.doesCountFrames() }
    if notices.contains(.rejectsExtended) { rejectsExtended(&effects) }
  }

  /// Echo is on again: the adapter may have restarted unnoticed, and use the wrong ECU and protocol. Once per link.
  var hasLostEchoSetting: Bool { dialogue.hasEcho && !traits.missing.contains(.echoOff) && !hasFollowedEcho }
  mutating func followEcho() { hasFollowedEcho = true }

  // MARK: Setup

  private mutating func setupReplied(
    _ step: SetupStep, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    switch SetupAnswer(to: step, dialogue.reply[dialogue.body...], &traits) {
    case .done:
      if step == .reset { setups.answered(&effects) }
    case .unknownCommand:
      traits.lacks(step)
      if let loss = step.loss { effects.append(.note(loss)) }
    case .nonsense:
      values.countBadReply(dialogue.reply, &effects)
      return setups.failed(Self.nonsense, isSilent: false, at: now, &values, &effects)
    }
    let begun = (SetupStep.allCases.firstIndex(of: step) ?? 0) + 1
    if let next = SetupStep.allCases.indices.first(where: { $0 >= begun && !traits.missing.contains(SetupStep.allCases[$0]) }) {
      state = .settingUp(step: next)
      return .none
    }
    if let name = traits.name { values.publish(.adapter, .string(name), &effects) }
    if withoutExtended == traits.name { traits.takesNoHeader() }
    if !traits.hasVoltage { values.withdraw(.adapterVoltage, Self.noVoltage, &effects) }
    addressing = nil
    dialogue.isInStep()
    state = .ready
    return .ready
  }

  // MARK: Addressing

  /// Retargets the adapter, `home` being the ECU of the fast request. For functional requests before CAN it must have no header set: it is
  /// reinitialised.
  mutating func retarget(to there: ECUAddressing, home: Target?, at now: Instant, _ effects: inout Effects) -> AdapterEvent {
    if there.target?.request == nil, let addressing, addressing.target != .unaddressed { return .needsSetup }
    let retargeting = Retargeting(there, steps: there.steps(from: addressing, traits), isHome: there.target == home, at: now)
    if retargeting.isDone {
      addressing = there
    } else {
      state = .retargeting(retargeting)
      sendNext(at: now, &effects)
    }
    return .none
  }

  private mutating func retargetReplied(
    _ retargeting: Retargeting, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    var retargeting = retargeting
    switch retargeting.replied(dialogue) {
    case .accepted, .skipped(hasNoFilter: false): break
    case .skipped(hasNoFilter: true):
      traits.lacksFilter()
      effects.append(.note(AdapterTraits.filterLoss))
    case .rejected: return retargetRejected(retargeting, at: now, &values, &effects)
    case .unreadable:
      values.countBadReply(dialogue.reply, &effects)
      if addressing == nil { return setups.failed(Self.nonsense, isSilent: false, at: now, &values, &effects) }
      values.publish(fault: "the adapter rejected \(retargeting.text): reinitialising it", &effects)
      return .needsSetup
    }
    guard retargeting.isDone else {
      state = .retargeting(retargeting)
      return .none
    }
    // From a fresh setup more steps are needed.
    let took = addressing == nil ? nil : now &- retargeting.began
    addressing = retargeting.addressing
    setups.reset()
    state = .ready
    return .retargeted(took: took)
  }

  /// The adapter cannot address this target. Without the fast request nothing is left; other requests are rejected.
  private mutating func retargetRejected(
    _ retargeting: Retargeting, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    let command = retargeting.text
    if !retargeting.isHome {
      addressing = addressing?.withoutTarget
      state = .ready
      return .rejected(retargeting.addressing.target, "the adapter does not support \(command)")
    }
    if addressing == nil {
      return .needsRest(
        until: now &+ Self.slowRetry, "the adapter does not support \(command) and cannot be set up safely; use another adapter")
    }
    values.publish(fault: "the adapter rejected \(command): reinitialising it", &effects)
    return .needsSetup
  }

  /// A query has changed the addressing.
  mutating func follow(_ change: Queries.Outcome.Addressing) {
    switch change {
    case .unchanged: break
    case .unknownTarget: addressing = addressing?.withoutTarget
    case .changed(let now): addressing = now
    }
  }

  /// The adapter identifies as an STN chip without being one.
  private mutating func rejectsExtended(_ effects: inout Effects) {
    traits.takesNoHeader()
    withoutExtended = traits.name
    effects.append(.store(key: Self.withoutExtendedKey, Array((traits.name ?? "").utf8)))
    // The default filter was sufficient for STPX; the fast request sets a narrower one.
    addressing = addressing?.withoutTarget
  }

  // MARK: Voltage and low power

  /// Handles the voltage, `12.4V`, or that it is not supported.
  private mutating func voltageReplied(isProbe: Bool, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    let volts = dialogue.voltage
    if let volts {
      values.publish(.adapterVoltage, .float(volts), &effects)
    } else if dialogue.isNotUnderstood {
      lacksVoltage(values, &effects)
    } else {
      values.countBadReply(dialogue.reply, &effects)
    }
    state = .ready
    return .measured(volts, isProbe: isProbe)
  }

  private mutating func lacksVoltage(_ values: ValueTable, _ effects: inout Effects) {
    traits.lacksVoltage()
    values.withdraw(.adapterVoltage, Self.noVoltage, &effects)
  }

  /// The adapter has accepted the sleep command, or does not support it.
  private mutating func lowPowerReplied(until: Instant, _ effects: inout Effects) -> AdapterEvent {
    if SetupAnswer(dialogue.reply[dialogue.body...]) == .done {
      state = .lowPower(until: until)
      return .none
    }
    traits.cannotSleep()
    effects.append(.note("the adapter does not support ATLP: it stays awake while the vehicle sleeps"))
    state = .ready
    return .staysAwake
  }

  // MARK: Failures

  private mutating func timedOut(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    values.countTimeout(&effects)
    if unanswered.add(dialogue.command) {
      // Learning that a command is unsupported does not count as a failure.
      setups.reset()
      let command = String(decoding: dialogue.command.dropLast(), as: UTF8.self)
      effects.append(.note("the adapter repeatedly does not respond to \(command): the command is no longer used"))
    }
    switch state {
    case .settingUp, .identifyingProtocol: return setups.failed(Self.silence, isSilent: true, at: now, &values, &effects)
    case .retargeting where addressing == nil: return setups.failed(Self.silence, isSilent: true, at: now, &values, &effects)
    // The addressing is unknown now.
    case .retargeting(let retargeting):
      values.publish(fault: "the adapter does not respond to \(retargeting.text): reinitialising it", &effects)
      return .needsSetup
    case .measuringVoltage:
      state = .ready
      if unanswered.holds("ATRV") { lacksVoltage(values, &effects) }
      return .measurementFailed(.timeout)
    case .enteringLowPower(let until):
      state = .lowPower(until: until)
      return .none
    case .ready: return .failed(.timeout)
    case .down, .resting, .lowPower: return .none
    }
  }

  /// Handles an overflow without a prompt.
  mutating func overflowed(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    values.countBadReply(dialogue.reply, &effects)
    switch state {
    case .settingUp: return setups.failed(Self.nonsense, isSilent: false, at: now, &values, &effects)
    case .retargeting, .identifyingProtocol: return .needsSetup
    case .measuringVoltage:
      state = .ready
      return .measurementFailed(.overflow)
    case .enteringLowPower(let until):
      state = .lowPower(until: until)
      return .none
    case .ready: return .failed(.overflow)
    case .down, .resting, .lowPower: return .none
    }
  }

  /// Counts a failure of a command of the others, and resynchronises.
  mutating func count(
    _ failure: AdapterFailure, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    switch failures.count(failure, &values, &effects) {
    case .needsSetup: return .needsSetup
    case .resynchronise: resynchronise(at: now, &effects)
    case .goOn: break
    }
    return .none
  }
}
