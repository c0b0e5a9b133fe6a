// The session with an ELM327 adapter, a lower half of the obd kind (AdapterDialogue): setup, ECU addressing, voltage, low power, and the
// command in flight. If a clone does not support a command, only the feature that needs it is disabled. After three failed setups the link
// is reset. A failed command is counted; its reply never becomes a value.
//
//   down ─ link up ─▶ settingUp ─▶ ready ⇄ retargeting, identifyingProtocol, measuringVoltage
//                       ▲           ├─▶ enteringLowPower ─▶ lowPower ──┐
//                       │           └─▶ resting (the adapter failed) ──┤
//                       └──────────────────────────────────────────────┘  any state: link down ─▶ down, settings lost ─▶ settingUp

struct AdapterSession: AdapterDialogue {
  static let silentMessage = "the adapter does not respond; check its power"
  static let unreadableMessage = "the adapter's replies are unreadable; check baud rate and wiring"
  private static let noVoltageMessage = "the adapter does not report it"
  /// The timeout for a reply.
  static let timeout: Nanoseconds = 5 * .second
  private static let protocolQuery = Array("ATDPN\r".utf8)
  private static let voltageQuery = Array("ATRV\r".utf8)
  private static let lowPowerCommand = Array("ATLP\r".utf8)
  /// The time after which an adapter that does not support a required command is initialised again: it may have been replaced.
  private static let unsupportedRetry: Nanoseconds = 60 * .second

  enum State: Sendable {
    /// There is no link, or it is about to be reset, for this reason.
    case down(String)
    /// This step of the setup is in flight or next.
    case settingUp(step: Int)
    /// Commands of the owner are in flight or next.
    case ready
    case retargeting(Retargeting)
    /// The adapter has detected the protocol; the query for it is in flight or next.
    case identifyingProtocol
    /// `isProbe`: polling is paused, and resumes if the voltage allows it.
    case measuringVoltage(isProbe: Bool)
    case enteringLowPower(until: Instant)
    /// The adapter sleeps until this time, or until a client sends a query.
    case lowPower(until: Instant)
    /// The adapter failed for this reason; nothing is sent until it is reinitialised at this time.
    case resting(until: Instant, String)
  }

  private(set) var state = State.down("link not up yet")
  private(set) var dialogue = ELMDialogue()
  private var parser = ReplyParser()
  private(set) var traits = AdapterTraits()
  /// The current addressing, or nil if the adapter must be retargeted first.
  private(set) var addressing: ECUAddressing?
  private(set) var setups: SetupAttempts
  private var unanswered = UnansweredCommands()
  /// Whether the adapter has already been reinitialised on this link because its echo was on again.
  private var hasHandledEcho = false
  private var stpxRejection = STPXRejection()
  private var failures = AdapterFailureCounters(silent: Self.silentMessage, unusable: "the adapter's replies are unusable")

  init(link: String = "") { setups = SetupAttempts(link: link) }

  // MARK: Link

  mutating func restore(_ stored: [String: [UInt8]]) {
    stpxRejection.restore(stored)
    setups.restore(stored[BaudRate.key])
  }

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    setups.linkCameUp(baud: baud, &effects)
    dialogue.reset()
    (traits, unanswered, hasHandledEcho) = (AdapterTraits(), UnansweredCommands(), false)
    parser = ReplyParser()
    failures.reset()
    state = .settingUp(step: 0)
  }

  mutating func disconnect(_ reason: String) {
    state = .down(reason)
    dialogue.reset()
  }

  /// Switches to the next baud rate on the same link. Returns false if there is none.
  mutating func tryNextBaudRate(_ effects: inout Effects) -> Bool {
    guard setups.tryNextBaudRate(&effects) else { return false }
    dialogue.reset()
    return true
  }

  // MARK: Commands

  mutating func send(_ bytes: [UInt8], timeout: Nanoseconds = Self.timeout, at now: Instant, _ effects: inout Effects) {
    dialogue.begin(bytes, deadline: now &+ timeout)
    effects.send(.main, bytes)
  }

  /// Sends the next command of the current state, if it has one.
  mutating func sendNext(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .settingUp(let step): send(SetupStep.allCases[step].bytes + [carriageReturn], timeout: setups.timeout, at: now, &effects)
    case .retargeting(let retargeting): send(retargeting.command, at: now, &effects)
    case .identifyingProtocol: send(Self.protocolQuery, at: now, &effects)
    case .measuringVoltage: send(Self.voltageQuery, at: now, &effects)
    case .enteringLowPower: send(Self.lowPowerCommand, at: now, &effects)
    case .down, .ready, .lowPower, .resting: break
    }
  }

  /// Aborts a running command, and discards input until the adapter is quiet.
  mutating func resynchronise(at now: Instant, _ effects: inout Effects) {
    dialogue.resynchronise(at: now)
    effects.send(.main, [space])
  }

  /// Queries the protocol that the adapter has detected.
  mutating func identifyProtocol() { state = .identifyingProtocol }

  /// Measures the voltage at the OBD connector.
  mutating func measureVoltage(isProbe: Bool, at now: Instant, _ effects: inout Effects) {
    state = .measuringVoltage(isProbe: isProbe)
    sendNext(at: now, &effects)
  }

  mutating func enterLowPower(until: Instant) { state = .enteringLowPower(until: until) }

  /// Sends nothing until this time; the adapter is reinitialised afterwards.
  mutating func rest(until: Instant, _ reason: String, _ effects: inout Effects) { state = .resting(until: until, reason) }
  mutating func stop(_ effects: inout Effects) {}

  /// Begins to initialise the adapter: sends a space, which wakes a sleeping adapter and stops a busy one. A reset follows.
  mutating func beginSetup(at now: Instant, _ effects: inout Effects) {
    traits = AdapterTraits(unanswered)
    addressing = nil
    failures.reset()
    state = .settingUp(step: 0)
    resynchronise(at: now, &effects)
  }

  // MARK: Replies

  mutating func receive(_ bytes: [UInt8], at now: Instant) -> AdapterArrival {
    let arrival = dialogue.receive(bytes, at: now)
    if arrival.replied { unanswered.recordReply(to: dialogue.command) }
    return arrival
  }

  /// Handles an expired deadline.
  mutating func expire(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch dialogue.expire(at: now) {
    case .nothing, .resynchronised: .none
    case .timedOut: timedOut(at: now, &values, &effects)
    case .neverQuiet: .needs(.giveUp(Self.unreadableMessage))
    }
  }

  /// Handles a complete reply.
  mutating func replied(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch state {
    case .retargeting, .identifyingProtocol, .measuringVoltage, .enteringLowPower:
      if let status = dialogue.restartStatus { return .needs(.settingsLost(status, at: now)) }
    case .down, .resting, .lowPower, .ready, .settingUp: break
    }
    switch state {
    case .down, .resting, .lowPower: return .none
    case .ready: return .replied
    case .settingUp(let step): return setupReplied(SetupStep.allCases[step], at: now, &values, &effects)
    case .retargeting(let retargeting): return retargetReplied(retargeting, at: now, &values, &effects)
    case .identifyingProtocol:
      state = .ready
      return .identified(lines(of: dialogue.reply[dialogue.bodyStart...]).first.flatMap { OBDProtocol(digits: $0) })
    case .measuringVoltage(let isProbe): return voltageReplied(isProbe: isProbe, &values, &effects)
    case .enteringLowPower(let until): return lowPowerReplied(until: until, &effects)
    }
  }

  /// Parses the reply. `learnsChecksums`: the reply answers a poll, and so shows whether the adapter omits checksums.
  mutating func parse(learnsChecksums: Bool = false) -> ReplyReader.Outcome {
    parser.parse(dialogue, addressByte: addressing?.target?.addressBytes.receivedByte, learnsChecksums: learnsChecksums)
  }

  /// The messages of the last parsed reply.
  var reader: ReplyReader { parser.reader }

  /// Handles an unsolicited status: the adapter restarted, or is going to sleep.
  mutating func statusReceived(_ status: ELMStatus, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch state {
    // A restart before the reset, or of an adapter that rests or sleeps, has no consequences.
    case .down, .resting, .settingUp(step: 0), .enteringLowPower, .lowPower: .none
    case .settingUp: setups.recordFailure(status.message, isSilent: false, at: now, &values, &effects)
    case .ready, .retargeting, .identifyingProtocol, .measuringVoltage: .needs(.settingsLost(status, at: now))
    }
  }

  /// Applies what a vehicle's reply has shown about the adapter.
  mutating func apply(_ reaction: Reaction, _ effects: inout Effects) {
    let notices = reaction.notices
    if notices.contains(.usableReply) { dialogue.noteUsableReply() }
    if notices.contains(.vehicleResponded) { failures.reset() }
    if notices.contains(.replacedFastRequest) { failures.resetUnusable() }
    if let bus = reaction.detectedProtocol {
      addressing = ECUAddressing(bus: bus, target: .unaddressed, timing: addressing?.timing ?? .initial)
    }
    if notices.contains(.stpxCountsFrames) { traits.noteFrameCounting() }
    if notices.contains(.rejectsSTPX) { disableSTPX(&effects) }
  }

  /// Whether the echo is on again: the adapter may have restarted unnoticed and lost its addressing. False once this has been handled on
  /// this link.
  var hasLostEchoSetting: Bool { dialogue.hasEcho && !traits.unsupported.contains(.echoOff) && !hasHandledEcho }
  mutating func noteEchoHandled() { hasHandledEcho = true }

  // MARK: Setup

  private mutating func setupReplied(
    _ step: SetupStep, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    switch SetupReply(to: step, dialogue.reply[dialogue.bodyStart...], &traits) {
    case .done:
      if step == .reset { setups.bannerReceived(&effects) }
    case .unknownCommand:
      traits.markUnsupported(step)
      if let loss = step.loss { effects.append(.note(loss)) }
    case .unreadable:
      values.countBadReply(dialogue.reply, &effects)
      return setups.recordFailure(Self.unreadableMessage, isSilent: false, at: now, &values, &effects)
    }
    let nextIndex = (SetupStep.allCases.firstIndex(of: step) ?? 0) + 1
    if let next = SetupStep.allCases.indices.first(where: { $0 >= nextIndex && !traits.unsupported.contains(SetupStep.allCases[$0]) }) {
      state = .settingUp(step: next)
      return .none
    }
    if let name = traits.name { values.publish(.adapter, .string(name), &effects) }
    if stpxRejection.applies(to: traits) { traits.markSTPXUnsupported() }
    if !traits.reportsVoltage { values.withdraw(.adapterVoltage, Self.noVoltageMessage, &effects) }
    addressing = nil
    dialogue.noteUsableReply()
    state = .ready
    return .ready
  }

  // MARK: Addressing

  /// Retargets the adapter; `fastTarget` is the ECU of the fast request (the request that is polled at the device's rate). On pre-CAN
  /// protocols, only reinitialising the adapter removes a header.
  mutating func retarget(to destination: ECUAddressing, fastTarget: Target?, at now: Instant, _ effects: inout Effects) -> AdapterEvent {
    if destination.target?.request == nil, let addressing, addressing.target != .unaddressed { return .needs(.setUp(fault: nil)) }
    let retargeting = Retargeting(
      destination, steps: destination.steps(from: addressing, traits), isForFastRequest: destination.target == fastTarget, at: now)
    if retargeting.isDone {
      addressing = destination
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
      traits.markFilterUnsupported()
      effects.append(.note(AdapterTraits.filterLoss))
    case .rejected: return retargetRejected(retargeting, at: now, &values, &effects)
    case .unreadable:
      values.countBadReply(dialogue.reply, &effects)
      if addressing == nil { return setups.recordFailure(Self.unreadableMessage, isSilent: false, at: now, &values, &effects) }
      return .needs(.setUp(fault: "the adapter rejected \(retargeting.text): reinitialising it"))
    }
    guard retargeting.isDone else {
      state = .retargeting(retargeting)
      return .none
    }
    // The first retargeting after a setup takes more commands than later ones, so its duration is not representative.
    let took = addressing == nil ? nil : now &- retargeting.began
    addressing = retargeting.addressing
    setups.reset()
    state = .ready
    return .retargeted(took: took)
  }

  /// Handles a target that the adapter cannot address: reinitialises the adapter for the fast request, and rejects other requests.
  private mutating func retargetRejected(
    _ retargeting: Retargeting, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> AdapterEvent {
    let command = retargeting.text
    if !retargeting.isForFastRequest {
      addressing = addressing?.withoutTarget(next: retargeting.addressing.target)
      state = .ready
      return .rejected(retargeting.addressing.target, "the adapter does not support \(command)")
    }
    if addressing == nil {
      return .needs(
        .rest(
          until: now &+ Self.unsupportedRetry, "the adapter does not support \(command) and cannot be set up safely; use another adapter"))
    }
    return .needs(.setUp(fault: "the adapter rejected \(command): reinitialising it"))
  }

  /// Updates the addressing after a command of a query has changed it.
  mutating func apply(_ change: Queries.Outcome.Addressing) {
    switch change {
    case .unchanged: break
    case .unknownTarget: addressing = addressing?.withoutTarget()
    case .changed(let new): addressing = new
    }
  }

  /// Stores that the adapter identifies as an STN chip but does not support STPX.
  private mutating func disableSTPX(_ effects: inout Effects) {
    traits.markSTPXUnsupported()
    stpxRejection.note(traits, &effects)
    // The default filter was sufficient for STPX. Without it, the fast request sets a narrower one: retarget the adapter.
    addressing = addressing?.withoutTarget()
  }

  // MARK: Voltage and low power

  /// Handles the reply to the voltage query: `12.4V`, or `?` if the adapter does not support it.
  private mutating func voltageReplied(isProbe: Bool, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    let volts = dialogue.voltage
    if let volts {
      values.publish(.adapterVoltage, .float(volts), &effects)
    } else if dialogue.isNotUnderstood {
      disableVoltage(values, &effects)
    } else {
      values.countBadReply(dialogue.reply, &effects)
    }
    state = .ready
    return .measured(volts, isProbe: isProbe)
  }

  private mutating func disableVoltage(_ values: ValueTable, _ effects: inout Effects) {
    traits.markVoltageUnsupported()
    values.withdraw(.adapterVoltage, Self.noVoltageMessage, &effects)
  }

  /// Handles the reply to the sleep command.
  private mutating func lowPowerReplied(until: Instant, _ effects: inout Effects) -> AdapterEvent {
    if SetupReply(dialogue.reply[dialogue.bodyStart...]) == .done {
      state = .lowPower(until: until)
      return .none
    }
    traits.markLowPowerUnsupported()
    effects.append(.note("the adapter does not support ATLP: it stays awake while the vehicle sleeps"))
    state = .ready
    return .staysAwake
  }

  // MARK: Failures

  private mutating func timedOut(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    values.countTimeout(&effects)
    if unanswered.recordMissingReply(to: dialogue.command) {
      // A setup that failed because of an unsupported command does not count as a failure.
      setups.reset()
      let command = String(decoding: dialogue.command.dropLast(), as: UTF8.self)
      effects.append(.note("the adapter repeatedly failed to respond to \(command): the command is no longer used"))
    }
    switch state {
    case .settingUp, .identifyingProtocol: return setups.recordFailure(Self.silentMessage, isSilent: true, at: now, &values, &effects)
    case .retargeting where addressing == nil: return setups.recordFailure(Self.silentMessage, isSilent: true, at: now, &values, &effects)
    case .retargeting(let retargeting):
      return .needs(.setUp(fault: "the adapter does not respond to \(retargeting.text): reinitialising it"))
    case .measuringVoltage:
      state = .ready
      if unanswered.isDisabled("ATRV") { disableVoltage(values, &effects) }
      return .measurementFailed(.timeout)
    case .enteringLowPower(let until):
      state = .lowPower(until: until)
      return .none
    case .ready: return .failed(.timeout)
    case .down, .resting, .lowPower: return .none
    }
  }

  /// Handles a reply that is too long.
  mutating func overflowed(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    values.countBadReply(dialogue.reply, &effects)
    switch state {
    case .settingUp: return setups.recordFailure(Self.unreadableMessage, isSilent: false, at: now, &values, &effects)
    case .retargeting, .identifyingProtocol: return .needs(.setUp(fault: nil))
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

  /// Counts a failure of a command of the owner, and resynchronises if necessary.
  mutating func count(_ failure: AdapterFailure, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch failures.count(failure, &values, &effects) {
    case .needsSetup: return .needs(.setUp(fault: nil))
    case .resynchronise: resynchronise(at: now, &effects)
    case .none: break
    }
    return .none
  }
}
