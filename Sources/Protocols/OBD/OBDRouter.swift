// Owns the components of `OBDMachine` and routes results between them: events of the adapter go to the vehicle and the clients, and the
// actions that these require (`AdapterAction`) go to the adapter. The router has no other state.

struct OBDRouter<Dialogue: AdapterDialogue>: Sendable {
  /// The lower half.
  private(set) var session: Dialogue
  private(set) var vehicle: VehicleSession
  private(set) var clients = ClientSession()
  private(set) var values: ValueTable

  init(_ session: Dialogue, _ vehicle: VehicleSession, _ values: ValueTable) {
    (self.session, self.vehicle, self.values) = (session, vehicle, values)
  }

  // MARK: The next command

  /// Sends the next command. Call it only while the adapter is idle.
  mutating func sendNext(at now: Instant, _ effects: inout Effects) {
    if let text = session.unexpectedText { return unexpectedTextReceived(text, at: now, &effects) }
    switch session.activity {
    case .down, .measuring: break
    case .resting, .sleeping: setUp(at: now, &effects)
    case .busy: session.sendNext(at: now, &effects)
    case .ready where clients.queries.isRunning: sendQuery(at: now, &effects)
    case .ready:
      switch vehicle.next(session, hasQueries: clients.queries.areWaiting, at: now, &values, &effects) {
      case .nothing: break
      case .query:
        clients.begin(on: vehicle.bus, session, fastAddressing: vehicle.fastAddressing, &effects)
        sendQuery(at: now, &effects)
      case .measureVoltage(let isProbe): session.measureVoltage(isProbe: isProbe, at: now, &effects)
      case .retarget(let destination):
        route(session.retarget(to: destination, fastTarget: vehicle.fastAddressing.target, at: now, &effects), at: now, &effects)
      case .send(let request, let timeout): session.send(.request(request), timeout: timeout, at: now, &effects)
      }
    }
  }

  /// Sends the next command of the running query, if there is one.
  private mutating func sendQuery(at now: Instant, _ effects: inout Effects) {
    guard let command = clients.queries.adapterCommand else { return }
    session.send(command, timeout: AdapterSession.timeout, at: now, &effects)
  }

  /// Resynchronises after unexpected text, before the next command is sent.
  private mutating func unexpectedTextReceived(_ text: [UInt8], at now: Instant, _ effects: inout Effects) {
    values.countBadReply(text, &effects)
    let isPolling = session.isReady && !clients.queries.isRunning
    perform(isPolling ? .count(.unusable("unexpected text", resynchronising: true)) : .resynchronise, at: now, &effects)
  }

  // MARK: Events of the adapter

  mutating func expire(at now: Instant, _ effects: inout Effects) {
    route(session.expire(at: now, &values, &effects), at: now, &effects)
  }

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    if session.reasonDown != nil { return }
    let arrival = session.receive(bytes, at: now, &effects)
    if arrival.replied { route(session.replied(at: now, &values, &effects), at: now, &effects) }
    if arrival.overflowed { route(session.overflowed(at: now, &values, &effects), at: now, &effects) }
    if let status = arrival.unsolicited { route(session.statusReceived(status, at: now, &values, &effects), at: now, &effects) }
  }

  private mutating func route(_ event: AdapterEvent, at now: Instant, _ effects: inout Effects) {
    switch event {
    case .none: break
    case .ready: vehicle.adapterReady(session.traits.name, at: now, values, &effects)
    case .replied where clients.queries.isRunning:
      let parsed = clients.queries.awaitsVehicle ? session.parse(learnsChecksums: false) : .empty
      follow(clients.replied(parsed, session, fastAddressing: vehicle.fastAddressing, values.scales, &effects), at: now, &effects)
    case .replied:
      let parsed = session.parse(learnsChecksums: vehicle.isPolling)
      follow(vehicle.replied(parsed, session, at: now, &values, &effects), at: now, &effects)
    case .failed(let failure) where clients.queries.isRunning:
      follow(clients.failed(failure, session.command, &effects), at: now, &effects)
    case .failed(let failure): follow(vehicle.failed(failure, session, at: now, &effects), at: now, &effects)
    case .retargeted(let took): if let took { vehicle.retargeted(took: took) }
    case .rejected(let target, let message): vehicle.stopRequests(to: target, message, &values, &effects)
    case .identified(let bus): follow(vehicle.identified(bus, session, at: now, &values, &effects), at: now, &effects)
    case .measured(let volts, let isProbe):
      follow(vehicle.measured(volts, isProbe: isProbe, session, at: now, &values, &effects), at: now, &effects)
    case .measurementFailed(let failure):
      vehicle.measurementFailed(at: now)
      perform(.count(failure), at: now, &effects)
    case .staysAwake: values.publish(status: vehicle.sleep.silentStatus, &effects)
    case .needs(let action): perform(action, at: now, &effects)
    }
  }

  private mutating func follow(_ reaction: Reaction, at now: Instant, _ effects: inout Effects) {
    session.apply(reaction, &effects)
    perform(reaction.nextAction, at: now, &effects)
  }

  private mutating func follow(_ outcome: Queries.Outcome, at now: Instant, _ effects: inout Effects) {
    session.apply(outcome.addressing)
    if outcome.hasCleared { vehicle.requestAllNow(at: now) }
    perform(outcome.nextAction, at: now, &effects)
  }

  // MARK: Actions of the adapter session

  private mutating func perform(_ action: AdapterAction, at now: Instant, _ effects: inout Effects) {
    switch action {
    case .none: break
    case .resynchronise: session.resynchronise(at: now, &effects)
    case .count(let failure):
      vehicle.publishCounters(at: now, values, &effects)
      route(session.count(failure, at: now, &values, &effects), at: now, &effects)
    case .setUp(let fault):
      if let fault { values.publish(fault: fault, &effects) }
      setUp(at: now, &effects)
    case .restoreEcho:
      session.noteEchoHandled()
      setUp(at: now, &effects)
    case .rest(let until, let reason): rest(until: until, reason, &effects)
    case .identifyProtocol: session.identifyProtocol()
    case .enterLowPower(let until): if !clients.queries.areWaiting { session.enterLowPower(until: until) }
    case .giveUp(let reason): giveUp(reason, at: now, &effects)
    }
  }

  /// Initialises the adapter again, beginning with a reset.
  private mutating func setUp(at now: Instant, _ effects: inout Effects) {
    let error = CommandError.notConnected("the adapter is being reinitialised")
    clients.interrupt(error, session.command, &effects)
    vehicle.interrupt(error, &effects)
    values.resetAbsences()
    if values.status != .degraded, !vehicle.sleep.isProbing { values.publish(status: .starting, &effects) }
    session.beginSetup(at: now, &effects)
  }

  private mutating func rest(until: Instant, _ reason: String, _ effects: inout Effects) {
    values.publish(fault: reason, &effects)
    values.publish(status: .degraded, &effects)
    clients.failAll(.notConnected(reason), session.command, &effects)
    vehicle.endRequest()
    session.rest(until: until, reason, &effects)
  }

  /// Tries the next baud rate, or resets the link.
  private mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if session.tryNextBaudRate(&effects) { return setUp(at: now, &effects) }
    let reason = session.setupProblem ?? reason
    values.publish(fault: reason, &effects)
    values.publish(status: .degraded, &effects)
    disconnect(reason, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  // MARK: The link

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    failAll(.notConnected("link reopened"), &effects)
    session.linkCameUp(baud: baud, &effects)
    vehicle.linkCameUp(&values)
    values.publish(status: .starting, &effects)
  }

  mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    // If the daemon has reset the link, keep the fault that explains this. If the link broke, the earlier fault no longer applies.
    if session.reasonDown == nil { values.publish(fault: nil, &effects) }
    if session.reasonDown != reason { values.publish(status: .waiting, &effects) }
    disconnect(reason, &effects)
  }

  mutating func stop(_ effects: inout Effects) {
    session.stop(&effects)
    linkWentDown("link closed", &effects)
  }

  private mutating func disconnect(_ reason: String, _ effects: inout Effects) {
    failAll(.notConnected(reason), &effects)
    values.resetAbsences()
    session.disconnect(reason)
  }

  private mutating func failAll(_ error: CommandError, _ effects: inout Effects) {
    clients.failAll(error, session.command, &effects)
    vehicle.interrupt(error, &effects)
  }

  // MARK: Clients and the disk

  mutating func restore(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    values.publish(status: .waiting, &effects)
    session.restore(stored)
    clients.restore(stored)
    vehicle.restore(stored, &values, &effects)
    for counter in [DeviceProperty.polls, .missed, .timeouts, .badReplies] { values.publish(counter, .int(0), &effects) }
  }

  mutating func append(_ query: OBDQuery) throws(CommandError) { try clients.append(query) }

  mutating func tune(_ id: CommandID, _ effects: inout Effects) throws(CommandError) {
    try vehicle.tune(id, for: session.traits, &effects)
  }

  mutating func cancel(_ id: CommandID) {
    clients.cancel(id)
    vehicle.cancelTuning(id)
  }

  mutating func timeReceived(_ wall: WallTime, _ effects: inout Effects) { clients.timeReceived(wall, &effects) }

  mutating func stored(_ key: String, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    clients.stored(key, failure, Motion(values.speeds, at: now), on: vehicle.bus, &effects)
  }

  mutating func markOverdue(at now: Instant) { vehicle.markOverdue(at: now) }
}
