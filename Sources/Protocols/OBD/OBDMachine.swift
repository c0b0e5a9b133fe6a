// The `obd` machine: routes inputs to its components, and their requests to each other. One command is in flight at a time; `advance` sends the
// next one. A late byte, an unexpected reply or noise never becomes a value.
//
//   OBDMachine ┬ AdapterSession      dialogue, setup, addressing, voltage, low power
//              ├ VehicleSession      ┬ VehiclePolling ┬ ProtocolDetection, PollScheduler, ResponseTimeout
//              │                     └ SleepPolicy
//              ├ ClientSession       ┬ Queries, Diagnostics
//              └ ValueTable          schema, published values, status and fault

/// Communicates with a vehicle through an ELM327 or compatible adapter.
public struct OBDMachine: Machine {
  private(set) var session: AdapterSession
  private(set) var vehicle: VehicleSession
  private(set) var clients = ClientSession()
  private(set) var values: ValueTable
  private let allowRaw: Bool
  /// The time of the last input.
  private var lastTurn: Instant = .min

  /// Polls `rate` times per second (0: back to back); sends other than read requests only if `allowRaw`. A stored baud rate is valid for
  /// `link`.
  init(
    link: String = "", rate: Double = 20, allowRaw: Bool = false, phase: Double = 0, vehicle choice: VehicleChoice = .auto,
    isFastOnly: Bool = false, signals: [CustomSignal] = [], overrides: PropertyOverrides = PropertyOverrides(),
    pauseConditions: PauseConditions? = nil
  ) {
    self.allowRaw = allowRaw
    session = AdapterSession(link: link)
    values = ValueTable(actions: Self.actions, signals: signals, overrides: overrides)
    let polling = VehiclePolling(
      rate: rate.isFinite ? rate : 20, phase: phase, choice, isFastOnly: isFastOnly, signals, overrides, &values)
    vehicle = VehicleSession(polling, pauseConditions)
  }

  public var schema: Schema { values.schema }

  public var nextWake: Instant? {
    if let deadline = session.dialogue.deadline { return vehicle.polling.scheduler.overdueAt.map { min(deadline, $0) } ?? deadline }
    return switch session.state {
    case .resting(let until, _), .lowPower(let until): until
    case .ready: clients.queries.isRunning ? nil : vehicle.polling.scheduler.nextWake(after: lastTurn)
    case .down, .settingUp, .retargeting, .identifyingProtocol, .measuringVoltage, .enteringLowPower: nil
    }
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    lastTurn = now
    switch input {
    // A closed link ends the dialogue; an expired deadline has no consequences then.
    case .linkChanged(.main, _), .stopping: break
    default: route(session.expire(at: now, &values, &effects), at: now, &effects)
    }
    switch input {
    case .started(let stored, _): restore(stored, &effects)
    case .linkChanged(.main, .up(_, let baud)): linkCameUp(baud: baud, &effects)
    case .linkChanged(.main, .down(let reason)): linkWentDown(reason, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id):
      clients.cancel(id)
      vehicle.cancelTuning(id)
    case .time(let wall): clients.timeReceived(wall, &effects)
    case .stored(let key, let failure):
      clients.stored(key, failure, Motion(values.speeds, at: now), on: vehicle.bus, &effects)
    case .stopping:
      linkWentDown("link closed", &effects)
      effects.append(.stopped)
    case .wake: vehicle.woke(at: now)
    case .linkChanged, .received, .sent, .observed, .response, .rows, .leaseBegan, .leaseEnded: break
    }
    advance(at: now, &effects)
  }

  // MARK: The next command

  /// Sends the next command, if the adapter is idle.
  private mutating func advance(at now: Instant, _ effects: inout Effects) {
    guard session.dialogue.isIdle, hasSomethingDue(at: now) else { return }
    if session.dialogue.hasUnexpectedText { return unexpectedTextReceived(at: now, &effects) }
    switch session.state {
    case .down, .measuringVoltage: break
    case .resting, .lowPower: setUp(at: now, &effects)
    case .settingUp, .retargeting, .identifyingProtocol, .enteringLowPower: session.sendNext(at: now, &effects)
    case .ready where clients.queries.isRunning: session.send(clients.queries.command, at: now, &effects)
    case .ready:
      switch vehicle.next(session, hasQueries: clients.queries.areWaiting, at: now, &values, &effects) {
      case .nothing: break
      case .query:
        let command = clients.begin(on: vehicle.bus, session, fastAddressing: vehicle.fastAddressing, &effects)
        if let command { session.send(command, at: now, &effects) }
      case .measureVoltage(let isProbe): session.measureVoltage(isProbe: isProbe, at: now, &effects)
      case .retarget(let destination):
        route(session.retarget(to: destination, fastTarget: vehicle.fastAddressing.target, at: now, &effects), at: now, &effects)
      case .send(let bytes, let timeout): session.send(bytes, timeout: timeout, at: now, &effects)
      }
    }
  }

  private func hasSomethingDue(at now: Instant) -> Bool {
    switch session.state {
    case .down, .measuringVoltage: false
    case .settingUp, .retargeting, .identifyingProtocol, .enteringLowPower: true
    case .lowPower(let until): now >= until || clients.queries.areWaiting
    case .resting(let until, _): now >= until
    case .ready: clients.queries.isRunning || vehicle.hasSomethingDue(session, hasQueries: clients.queries.areWaiting, at: now)
    }
  }

  /// Resynchronises after unexpected text, before the next command is sent.
  private mutating func unexpectedTextReceived(at now: Instant, _ effects: inout Effects) {
    values.countBadReply(session.dialogue.unexpectedText, &effects)
    if session.isReady, !clients.queries.isRunning {
      count(.unusable("unexpected text", resynchronising: true), at: now, &effects)
    } else {
      session.resynchronise(at: now, &effects)
    }
  }

  // MARK: The adapter

  private mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    if session.reasonDown != nil { return }
    let arrival = session.receive(bytes, at: now)
    if arrival.replied { route(session.replied(at: now, &values, &effects), at: now, &effects) }
    if arrival.overflowed { route(session.overflowed(at: now, &values, &effects), at: now, &effects) }
    if let status = arrival.unsolicited { route(session.statusReceived(status, at: now, &values, &effects), at: now, &effects) }
  }

  private mutating func route(_ event: AdapterEvent, at now: Instant, _ effects: inout Effects) {
    switch event {
    case .none: break
    case .ready: vehicle.adapterReady(session.traits.name, at: now, values, &effects)
    case .replied where clients.queries.isRunning:
      let parsed = clients.queries.awaitsVehicle ? session.parse() : .empty
      follow(clients.replied(parsed, session, fastAddressing: vehicle.fastAddressing, values.scales, &effects), at: now, &effects)
    case .replied:
      let parsed = session.parse(learnsChecksums: vehicle.isPolling)
      react(vehicle.replied(parsed, session, at: now, &values, &effects), at: now, &effects)
    case .failed(let failure) where clients.queries.isRunning:
      follow(clients.failed(failure, session.dialogue.command, &effects), at: now, &effects)
    case .failed(let failure): react(vehicle.failed(failure, session, at: now, &effects), at: now, &effects)
    case .needsSetup: setUp(at: now, &effects)
    case .needsRest(let until, let reason): rest(until: until, reason, &effects)
    case .gaveUp(let reason): giveUp(reason, at: now, &effects)
    case .retargeted(let took): if let took { vehicle.retargeted(took: took) }
    case .rejected(let target, let message): vehicle.refuse(target, message, &values, &effects)
    case .identified(let bus): react(vehicle.identified(bus, session, at: now, &values, &effects), at: now, &effects)
    case .measured(let volts, let isProbe):
      react(vehicle.measured(volts, isProbe: isProbe, session, at: now, &values, &effects), at: now, &effects)
    case .measurementFailed(let failure):
      vehicle.measurementFailed(at: now)
      count(failure, at: now, &effects)
    case .staysAwake: values.publish(status: vehicle.sleep.silentStatus, &effects)
    }
  }

  private mutating func react(_ reaction: Reaction, at now: Instant, _ effects: inout Effects) {
    session.apply(reaction, &effects)
    switch reaction.demand {
    case .none: break
    case .resynchronise: session.resynchronise(at: now, &effects)
    case .count(let failure): count(failure, at: now, &effects)
    case .restoreEcho:
      session.noteEchoHandled()
      setUp(at: now, &effects)
    case .settingsLost(let status): route(session.settingsLost(status, at: now, &values, &effects), at: now, &effects)
    case .rest(let until, let reason): rest(until: until, reason, &effects)
    case .identifyProtocol: session.identifyProtocol()
    case .enterLowPower(let until): if !clients.queries.areWaiting { session.enterLowPower(until: until) }
    }
  }

  private mutating func count(_ failure: AdapterFailure, at now: Instant, _ effects: inout Effects) {
    vehicle.publishCounters(at: now, values, &effects)
    route(session.count(failure, at: now, &values, &effects), at: now, &effects)
  }

  /// Initialises the adapter again, beginning with a reset.
  private mutating func setUp(at now: Instant, _ effects: inout Effects) {
    let error = CommandError.notConnected("the adapter is being reinitialised")
    clients.interrupt(error, session.dialogue.command, &effects)
    vehicle.interrupt(error, &effects)
    values.forgetAbsences()
    if values.status != .degraded, !vehicle.sleep.isProbing { values.publish(status: .starting, &effects) }
    session.beginSetup(at: now, &effects)
  }

  private mutating func rest(until: Instant, _ reason: String, _ effects: inout Effects) {
    values.publish(fault: reason, &effects)
    values.publish(status: .degraded, &effects)
    clients.failAll(.notConnected(reason), session.dialogue.command, &effects)
    vehicle.adapterRests()
    session.rest(until: until, reason)
  }

  // MARK: The link

  private mutating func restore(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    values.publish(status: .waiting, &effects)
    session.restore(stored)
    clients.restore(stored)
    vehicle.restore(stored, &values, &effects)
    for counter in [Signal.polls, .missed, .timeouts, .badReplies] { values.publish(counter, .int(0), &effects) }
  }

  private mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    failAll(.notConnected("link reopened"), &effects)
    session.linkCameUp(baud: baud, &effects)
    vehicle.linkCameUp(&values)
    values.publish(status: .starting, &effects)
  }

  private mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    // Keep the reason why the link was reset; after a broken link the earlier fault no longer applies.
    if session.reasonDown == nil { values.publish(fault: nil, &effects) }
    if session.reasonDown != reason { values.publish(status: .waiting, &effects) }
    disconnect(reason, &effects)
  }

  /// Tries the next baud rate, or resets the link.
  private mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if session.tryNextSpeed(&effects) { return setUp(at: now, &effects) }
    let reason = session.setups.allRatesFailedMessage ?? reason
    values.publish(fault: reason, &effects)
    values.publish(status: .degraded, &effects)
    disconnect(reason, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func disconnect(_ reason: String, _ effects: inout Effects) {
    failAll(.notConnected(reason), &effects)
    values.forgetAbsences()
    session.disconnect(reason)
  }

  private mutating func failAll(_ error: CommandError, _ effects: inout Effects) {
    clients.failAll(error, session.dialogue.command, &effects)
    vehicle.interrupt(error, &effects)
  }

  // MARK: Commands of clients

  private mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    do throws(CommandError) {
      let (action, arguments) = try Self.action(of: command)
      if action == Self.rates { return effects.append(.complete(id, .success(vehicle.ratesReport(values, at: now)))) }
      let unavailable = session.reasonUnavailable.map { CommandError.notConnected($0) }
      if action == Self.tune {
        if let unavailable { throw unavailable }
        return try vehicle.tune(id, for: session.traits.name, &effects)
      }
      let motion = Motion(values.speeds, at: now)
      let query = try OBDQuery(id, action, arguments, vehicle, clients.diagnostics, values.scales, motion, allowRaw: allowRaw)
      if let unavailable { throw unavailable }
      try clients.append(query)
    } catch {
      effects.append(.complete(id, .failure(error)))
    }
  }

  private mutating func follow(_ outcome: Queries.Outcome, at now: Instant, _ effects: inout Effects) {
    session.apply(outcome.addressing)
    if outcome.hasCleared { vehicle.requestAllNow() }
    switch outcome.followUp {
    case .none: break
    case .resynchronise: session.resynchronise(at: now, &effects)
    case .countTimeout: count(.timeout, at: now, &effects)
    case .setUp(let fault):
      if let fault { values.publish(fault: fault, &effects) }
      setUp(at: now, &effects)
    }
  }
}
