// The session with the vehicle: passes replies to polling, and pauses polling as the sleep policy decides. It publishes whether the vehicle
// responds, and returns what the adapter must do next.

struct VehicleSession: Sendable {
  private(set) var polling: VehiclePolling
  private(set) var sleep: SleepPolicy

  /// The next command while the adapter is ready; `query` is the next query of a client.
  enum Next {
    case nothing, query
    case measureVoltage(isProbe: Bool)
    case retarget(ECUAddressing)
    case send(AdapterRequest, timeout: Nanoseconds)
  }

  init(_ polling: VehiclePolling, _ pauseConditions: PauseConditions?) { (self.polling, sleep) = (polling, SleepPolicy(pauseConditions)) }

  var bus: OBDProtocol { polling.detection.bus }
  /// The ECU addressing that the fast request (FastPoll.swift) requires.
  var fastAddressing: ECUAddressing { polling.fastAddressing }

  // MARK: Connection

  mutating func restore(_ stored: [String: [UInt8]], _ values: inout ValueTable, _ effects: inout Effects) {
    polling.restore(stored, &values, &effects)
  }

  mutating func linkCameUp(_ values: inout ValueTable) {
    polling.linkCameUp()
    sleep.linkCameUp()
    values.resetScales()
  }

  /// Handles the completed setup of the adapter with this name.
  mutating func adapterReady(_ adapter: String?, at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    polling.adapterReady(adapter, isProbing: sleep.isProbing, at: now)
    guard polling.scheduler.pace.period == 0 else { return }
    for property in [DeviceProperty.lateness, .latenessP99] { values.withdraw(property, "polling as fast as possible", &effects) }
  }

  /// Ends tuning and the request in flight, because the adapter is set up again or the link is down.
  mutating func interrupt(_ error: CommandError, _ effects: inout Effects) { polling.interrupt(error, &effects) }
  /// Ends the request in flight, because nothing will be sent to the adapter until it is reinitialised.
  mutating func endRequest() { polling.endRequest() }
  mutating func retargeted(took: Nanoseconds) { polling.retargeted(took: took) }

  /// Stops the requests to an ECU that the adapter cannot address, and withdraws their values.
  mutating func stopRequests(to target: Target?, _ message: String, _ values: inout ValueTable, _ effects: inout Effects) {
    polling.stopRequests(to: target, message, &values, &effects)
  }

  // MARK: The next command

  /// Whether a command is due while the adapter is ready.
  func hasSomethingDue(_ session: some AdapterDialogue, hasQueries: Bool, at now: Instant) -> Bool {
    switch polling.scheduler.state {
    case .polling, .requesting: false
    case .paused(let until): until.map { now >= $0 } ?? false || hasQueries
    case .waiting:
      now >= polling.scheduler.pace.due || hasQueries || now >= polling.scheduler.queue.nextDue || !session.isSet(to: fastAddressing)
        || isMeasurementDue(session, at: now) || polling.scheduler.isReviewing
    }
  }

  /// Whether the voltage must be measured before the next poll.
  private func isMeasurementDue(_ session: some AdapterDialogue, at now: Instant) -> Bool {
    session.traits.reportsVoltage && sleep.isMeasurementDue(at: now, gap: polling.scheduler.pace.due &- now)
  }

  /// Marks the poll in flight as overdue if its next slot has come.
  mutating func markOverdue(at now: Instant) { polling.markOverdue(at: now) }

  /// The next command: first queries of clients, then a voltage measurement, then polls.
  mutating func next(
    _ session: some AdapterDialogue, hasQueries: Bool, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> Next {
    switch polling.scheduler.state {
    case .polling, .requesting: return .nothing
    case .waiting: break
    case .paused:
      if hasQueries { return .query }
      if sleep.isActive, session.traits.reportsVoltage {
        polling.endPause()
        return .measureVoltage(isProbe: true)
      }
      polling.resume(at: now)
    }
    if hasQueries { return .query }
    if isMeasurementDue(session, at: now) { return .measureVoltage(isProbe: false) }
    return polling.next(session, isProbing: sleep.isProbing, at: now, &values, &effects)
  }

  // MARK: Replies

  /// Whether the fast request is in flight.
  var isPolling: Bool { if case .polling = polling.scheduler.state { true } else { false } }

  /// Handles the reply to the request in flight, and returns what it requires of the adapter.
  mutating func replied(
    _ parsed: ReplyReader.Outcome, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> Reaction {
    var reaction = Reaction()
    switch polling.scheduler.state {
    case .polling(let poll): pollReplied(poll, parsed, session, at: now, &values, &effects, &reaction)
    case .requesting(let index, let sent):
      polling.requestReplied(index, sent: sent, parsed, session, at: now, &values, &effects, &reaction)
      recordUse(session, at: now, values)
      if reaction.notices.contains(.vehicleResponded) { endPauses() }
      // The last request of a review decides whether the pause ends.
      if sleep.isProbing, sleep.isReviewed, !polling.scheduler.isReviewing { answered(session, at: now, &values, &effects, &reaction) }
    case .waiting, .paused: break
    }
    return reaction
  }

  /// Whether the voltage of the battery is that of a property, because the adapter cannot measure it.
  private func measuresByProperty(_ session: some AdapterDialogue) -> Bool { !session.traits.reportsVoltage }

  private mutating func pollReplied(
    _ poll: PollScheduler.Poll, _ parsed: ReplyReader.Outcome, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable,
    _ effects: inout Effects, _ reaction: inout Reaction
  ) {
    switch polling.evaluate(parsed, session.reader) {
    case .values(let data, let source):
      reaction.note([.usableReply, .vehicleResponded])
      endPauses()
      guard polling.answered(poll, data, from: source, session, at: now, &values, &effects) else { return }
      answered(session, at: now, &values, &effects, &reaction)
    case .foreignRecord:
      reaction.note(.usableReply)
      let consequence = polling.countForeignRecord(session.reply, at: now, &values, &effects)
      execute(consequence, session, at: now, &values, &effects, &reaction)
    case .alive:
      reaction.note(.usableReply)
      let consequence = polling.livenessCheckAnswered(isProbing: sleep.isProbing, at: now)
      sleep.endProbing()
      execute(consequence, session, at: now, &values, &effects, &reaction)
    case .supportedPIDs:
      switch polling.supportedPIDsReceived(session, at: now, &values, &effects, &reaction) {
      case .failed(let failure): pollFailed(failure, poll, session, at: now, &values, &effects, &reaction)
      case .done(let consequence): execute(consequence, session, at: now, &values, &effects, &reaction)
      }
    case .failed(let failure): pollFailed(failure, poll, session, at: now, &values, &effects, &reaction)
    }
  }

  /// Handles a response of the vehicle. Pauses polling if the vehicle is not in use.
  private mutating func answered(
    _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects, _ reaction: inout Reaction
  ) {
    recordUse(session, at: now, values)
    if let pause = pause(session, at: now, values) {
      if sleep.beginReview(session.traits), polling.beginReview(of: values.usePositions) { return }
      return pausePolling(pause, session, at: now, &values, &effects, &reaction)
    }
    sleep.endProbing()
    values.publish(status: .polling, &effects)
    values.publish(fault: nil, &effects)
  }

  /// Records the signs of use and the voltage in the values that were published now.
  private mutating func recordUse(_ session: some AdapterDialogue, at now: Instant, _ values: ValueTable) {
    if values.inUseAt == now { sleep.recordUse(at: now) }
    if measuresByProperty(session), let voltage = values.batteryVoltage, voltage.at == now { sleep.recordVoltage(voltage.volts, at: now) }
  }

  /// The pause of a vehicle that responds, if its battery is low or it is not in use.
  private mutating func pause(_ session: some AdapterDialogue, at now: Instant, _ values: ValueTable) -> SleepPolicy.Pause? {
    if measuresByProperty(session), let pause = sleep.pauseIfLow(at: now, session.traits) { return pause }
    return values.hasSignsOfUse && !polling.timeout.isTuning ? sleep.pauseIfIdle(at: now, session.traits) : nil
  }

  private mutating func pollFailed(
    _ failure: PollFailure, _ poll: PollScheduler.Poll, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable,
    _ effects: inout Effects, _ reaction: inout Reaction
  ) {
    let consequence = polling.pollFailed(failure, poll, session, isProbing: sleep.isProbing, at: now, &values, &effects)
    execute(consequence, session, at: now, &values, &effects, &reaction)
  }

  /// Handles a request whose reply is missing or too long.
  mutating func failed(_ failure: AdapterFailure, _ session: some AdapterDialogue, at now: Instant, _ effects: inout Effects) -> Reaction {
    var reaction = Reaction()
    let rejectsSTPX = if case .timeout = failure { session.usesSTPX } else { false }
    polling.abort(rejectsSTPX: rejectsSTPX, at: now)
    if rejectsSTPX {
      effects.append(.note("no reply to STPX: no longer used; the adapter is retargeted for each ECU instead"))
      reaction.note(.rejectsSTPX)
      reaction.require(.resynchronise)
    } else {
      reaction.require(.count(failure))
    }
    return reaction
  }

  /// Handles the protocol that the adapter has detected, or nil if the adapter does not report it.
  mutating func identified(
    _ bus: OBDProtocol?, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> Reaction {
    var reaction = Reaction()
    let consequence = polling.identified(bus, at: now, &values, &effects, &reaction)
    execute(consequence, session, at: now, &values, &effects, &reaction)
    return reaction
  }

  /// Executes the consequence of a poll.
  private mutating func execute(
    _ consequence: PollConsequence, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects,
    _ reaction: inout Reaction
  ) {
    switch consequence {
    case .retry: break
    case .unusable(let reason, let resynchronising):
      recordUnusableReply(reason, resynchronising: resynchronising, session, &values, &effects, &reaction)
    case .malformed(let reason, let isRepeated):
      if isRepeated, replace(reason, at: now, &values, &effects, &reaction) {
        values.countBadReply(session.reply, &effects)
      } else {
        recordUnusableReply(reason, resynchronising: false, session, &values, &effects, &reaction)
      }
    case .settingsLost(let status): reaction.require(.settingsLost(status, at: now))
    case .echoReturned: reaction.require(.restoreEcho)
    case .replace(let message, let otherwise):
      if !replace(message, at: now, &values, &effects, &reaction) {
        execute(otherwise, session, at: now, &values, &effects, &reaction)
      }
    case .tryOther(let message, let isFinal): tryOther(message, isFinal: isFinal, session, at: now, &values, &effects, &reaction)
    case .responsePending(let message, let times):
      // The responses repeatedly come after the adapter's timeout: use the long timeout.
      if times >= 3 { polling.lengthenTimeout() }
      // The ECU responds, so only this request fails: poll another one.
      if times > 3, replace(message, at: now, &values, &effects, &reaction) { return }
      if times > 3 { vehicleSilent("\(message); retrying every second", .carSilent, &values, &effects) }
      polling.pause(until: now &+ .second)
    case .pause(let message): pauseForSilence(message, session, at: now, &values, &effects, &reaction)
    case .rest(let message):
      withdrawVehicleValues(message, &values, &effects)
      reaction.require(.rest(until: now &+ sleep.countPause(), message))
      polling.pausesChanged(to: sleep.pauses)
    case .stop(let message): stopPolling(message, &values, &effects)
    }
  }

  private func recordUnusableReply(
    _ reason: String, resynchronising: Bool, _ session: some AdapterDialogue, _ values: inout ValueTable, _ effects: inout Effects,
    _ reaction: inout Reaction
  ) {
    values.countBadReply(session.reply, &effects)
    reaction.require(.count(.unusable(reason, resynchronising: resynchronising)))
  }

  /// Replaces the fast request. Returns false if no other request is left.
  private mutating func replace(
    _ message: String, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects, _ reaction: inout Reaction
  ) -> Bool {
    let isReplaced = polling.replace(message, at: now, &values, &effects)
    if isReplaced { reaction.note(.replacedFastRequest) }
    return isReplaced
  }

  /// Tries the next request or protocol candidate, because this one was never answered or is not supported. After the last one, polling
  /// pauses, or stops if `isFinal`.
  private mutating func tryOther(
    _ message: String, isFinal: Bool, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable,
    _ effects: inout Effects,
    _ reaction: inout Reaction
  ) {
    // The ECUs have just reported their supported PIDs, so the protocol is right.
    if polling.detection.hasJustDiscovered, replace(message, at: now, &values, &effects, &reaction) { return }
    if polling.tryOther(for: session.traits.name) { return }
    if isFinal { stopPolling(message, &values, &effects) } else { pauseForSilence(message, session, at: now, &values, &effects, &reaction) }
  }

  // MARK: Silence and pauses

  private mutating func endPauses() {
    sleep.resetPauses()
    polling.pausesChanged(to: 0)
  }

  /// Pauses polling of a vehicle that does not respond.
  private mutating func pauseForSilence(
    _ message: String, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects,
    _ reaction: inout Reaction
  ) {
    let pause = sleep.pauseForSilence(session.traits)
    polling.pausesChanged(to: sleep.pauses)
    vehicleSilent(pause.message.map { "\(message); \($0)" } ?? message, pause.status, &values, &effects)
    pausePolling(for: pause.length, session, at: now, &reaction)
    // After the third pause, and after every fourth one from then on, poll a request that all ECUs support instead.
    polling.paused(message, checksLiveness: sleep.pauses % 4 == 3)
  }

  /// Stops polling until the link is opened again: repeating the request could cause a lock-out.
  private mutating func stopPolling(_ message: String, _ values: inout ValueTable, _ effects: inout Effects) {
    vehicleSilent("\(message); disconnect and connect to retry", .carSilent, &values, &effects)
    polling.pause(until: nil)
  }

  /// Publishes that the vehicle does not respond, and withdraws its values.
  private mutating func vehicleSilent(
    _ message: String, _ status: ValueTable.DeviceStatus, _ values: inout ValueTable, _ effects: inout Effects
  ) {
    polling.vehicleSilent(message, &effects)
    let message = status == .noCar ? "the adapter measures no battery voltage; plug it into a vehicle, or check the contacts" : message
    withdrawVehicleValues(message, &values, &effects)
    if status == .noCar {
      for request in polling.scheduler.queue.requests where request.isIdentity { values.withdraw(request, message, &effects) }
    }
    values.publish(status: status, &effects)
    values.publish(fault: message, &effects)
  }

  private mutating func withdrawVehicleValues(_ reason: String, _ values: inout ValueTable, _ effects: inout Effects) {
    values.withdrawVehicleValues(reason, &effects)
    polling.resetStatistics()
  }

  /// Pauses polling of a vehicle that is not in use, or whose battery is low.
  private mutating func pausePolling(
    _ pause: SleepPolicy.Pause, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects,
    _ reaction: inout Reaction
  ) {
    withdrawVehicleValues(pause.message ?? "", &values, &effects)
    values.publish(status: pause.status, &effects)
    values.publish(fault: pause.message, &effects)
    pausePolling(for: pause.length, session, at: now, &reaction)
  }

  /// Pauses polling for this long. If the pause is long enough, the adapter may sleep meanwhile.
  private mutating func pausePolling(for length: Nanoseconds, _ session: some AdapterDialogue, at now: Instant, _ reaction: inout Reaction)
  {
    polling.pause(until: now &+ length)
    if sleep.beginPause(length, session.traits) { reaction.require(.enterLowPower(until: now &+ length)) }
  }

  /// Handles a measured voltage in V, or nil if the adapter does not report it.
  mutating func measured(
    _ volts: Double?, isProbe: Bool, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> Reaction {
    var reaction = Reaction()
    sleep.recordVoltage(volts, at: now)
    if let pause = sleep.pauseIfLow(at: now, session.traits) {
      pausePolling(pause, session, at: now, &values, &effects, &reaction)
    } else if isProbe {
      polling.resume(at: now)
    }
    return reaction
  }

  /// Handles a voltage query without a reply.
  mutating func measurementFailed(at now: Instant) { sleep.recordVoltage(nil, at: now) }

  // MARK: Commands

  /// Requests all values at once, because clearing trouble codes may have changed them.
  mutating func requestAllNow(at now: Instant) { polling.requestAllNow(at: now) }

  mutating func publishCounters(at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    polling.publishCounters(at: now, values, &effects)
  }

  /// The report of target and actual rates.
  func ratesReport(_ values: ValueTable, at now: Instant) -> Report {
    let scheduler = polling.scheduler
    return scheduler.statistics.report(scheduler.fast, every: scheduler.pace.period, scheduler.queue, values, at: now)
  }

  mutating func tune(_ id: CommandID, for traits: AdapterTraits, _ effects: inout Effects) throws(CommandError) {
    guard !traits.isFrameInterface else {
      throw .refused(code: .notSupported, "nothing to tune: a CAN adapter passes on each response at once")
    }
    let scheduler = polling.scheduler
    guard scheduler.isConfirmed, !sleep.isProbing else {
      throw .refused(code: .notPolling, "cannot tune: the vehicle is not being polled; switch it on")
    }
    guard !polling.timeout.isLong, !scheduler.fast.request.isDiscovery else {
      throw .refused(
        code: .notPolling, "cannot tune now: the ECU responds slowly, or is still being detected; try again later")
    }
    polling.tune(id, for: traits.name, &effects)
  }

  mutating func cancelTuning(_ id: CommandID) { polling.cancelTuning(id) }
}
