// The `longboard` machine for a VESC: polls it at fixed times, executes commands between polls, and drives it under the motion lease. At
// most one request and one write are in flight. The machine passes inputs to its components, and the results of one component to the
// others. `advance` sends what is due: stops first, then set-points, then commands, then polls.
// Source: vedderb/bldc comm/packet.c and comm/commands.c.

/// Communicates with a VESC.
public struct VESCMachine: Machine {
  public let schema: Schema
  private(set) var session: VESCSession
  private(set) var polling: VESCPollScheduler
  private(set) var motion: VESCMotion
  private(set) var queue: VESCCommandQueue
  private(set) var telemetry: VESCTelemetry
  private var publisher: VESCPublisher

  /// Creates a machine from the options of `Kind.longboard`.
  public init(_ setup: Setup) throws(OptionError) {
    let options = try VESCOptions(setup)
    polling = VESCPollScheduler(rate: options.rate, phase: setup.phase)
    schema = Schema(properties: VESCSignal.properties(options, period: polling.period), actions: [Self.pingCAN])
    (session, motion, telemetry) = (VESCSession(options), VESCMotion(options), VESCTelemetry(options))
    queue = VESCCommandQueue(options, schema.properties, timeout: VESCSession.timeout)
    publisher = VESCPublisher(schema)
  }

  public var nextWake: Instant? {
    guard session.isUp else { return nil }
    var next = min(motion.expires ?? .max, session.writeDeadline ?? motion.nextDue ?? .max)
    if session.isClosing { return next == .max ? nil : next }
    switch session.state {
    case .down: break
    case .ready: if session.write == nil { next = min(next, queue.hasRequest ? .min : polling.due) }
    case .silent(let until): if session.write == nil { next = min(next, until) }
    case .waiting(let request):
      next = min(next, request.deadline, queue.progressDue(request.command) ?? .max)
      // Wake at the next slot as well: the response usually arrives earlier, and this saves a second timer per request.
      if !request.isOverdue, session.isEstablished { next = min(next, polling.due) }
    }
    return next == .max ? nil : next
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    // Overdue messages must not be handled for a lost link.
    case .linkChanged(.main, _): break
    default: expire(at: now, &effects)
    }
    switch input {
    case .started(let restored, _): restore(restored, &effects)
    case .linkChanged(.main, .up): linkCameUp(at: now, &effects)
    case .linkChanged(.main, .down(let reason)):
      session.linkWentDown(reason)
      forgetLink(reason, at: now, &effects)
    case .received(.main, let bytes) where session.isUp:
      var rest = bytes[...]
      while !rest.isEmpty {
        session.take(&rest)
        while let payload = session.nextPayload() { received(payload, at: now, &effects) }
      }
    case .sent(let id, let failure):
      switch session.sent(id) {
      case .stop: if failure == nil { motion.stopSent(at: now) }
      case .setPoint: motion.setPointSent(failure, &publisher, &effects)
      case .request, nil: break
      }
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id):
      motion.cancel(id)
      queue.cancel(id)
    case .stored(let key, let failure):
      telemetry.stored(key, failure, &publisher, &effects)
      queue.stored(key, failure, &publisher, &effects)
    case .leaseBegan(let deadline):
      motion.begin(deadline: deadline, unavailable: session.unavailability, at: now, &publisher, &effects)
    case .leaseEnded(let reason): motion.end(reason, at: now, &publisher, &effects)
    case .wake: if now >= polling.due { session.slotPassed() }
    case .stopping: stop(at: now, &effects)
    case .linkChanged, .received, .observed, .response, .rows, .time: break
    }
    advance(at: now, &effects)
    effects.append(.status(VESCStatus(session, isDriven: motion.isHeld, hasProblem: queue.problem != nil).rawValue))
    motion.updateLastWill(isUp: session.isUp, &effects)
    effects.append(.fault(session.problem ?? queue.problem ?? telemetry.fault))
  }

  /// Handles timeouts.
  private mutating func expire(at now: Instant, _ effects: inout Effects) {
    motion.expire(at: now, &publisher, &effects)
    if let deadline = session.writeDeadline, now >= deadline {
      session.giveUp("write timeout")
      forgetLink("write timeout", at: now, &effects)
      return effects.append(.resetLink(.main, reason: "write timeout"))
    }
    guard let request = session.request else { return }
    if now >= request.deadline {
      timedOut(request.command, at: now, &effects)
    } else if let due = queue.progressDue(request.command), now >= due {
      queue.reportProgress(at: now, &effects)
    }
  }

  /// Sends what is due, if the link is free; stops are sent first.
  private mutating func advance(at now: Instant, _ effects: inout Effects) {
    if session.isUp {
      if session.write != nil { return }
      if let due = motion.nextDue, now >= due {
        let purpose = motion.isStopping ? VESCSession.Write.Purpose.stop : .setPoint
        return session.send(motion.nextFrame(at: now), purpose, at: now, &effects)
      }
    }
    if session.isClosing {
      if !session.isUp || !motion.isStopping { shutDown(&effects) }
      return
    }
    switch session.state {
    case .down, .waiting: break
    case .silent(let until): if now >= until { session.ask(.firmware, at: now, &effects) }
    case .ready:
      if session.isEstablished, let command = queue.nextRequest(lacksSetup: polling.lacksSetup, at: now) {
        session.ask(command, queue.frame(command), at: now, &effects)
      } else if now >= polling.due {
        let poll = polling.next(at: now)
        session.ask(poll.command, lateness: poll.lateness, at: now, &effects)
      }
    }
  }

  // MARK: Responses

  private mutating func received(_ payload: ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects) {
    guard let request = session.request(answeredBy: payload) else { return }
    guard handleResponse(request.command, payload.dropFirst(), at: now, &effects) else { return polling.receivedInvalidResponse() }
    let isFirst = session.responded()
    if isFirst {
      motion.respondsAgain(at: now)
      publisher.vescBeganToRespond(&effects)
      queue.vescBeganToRespond(&publisher, &effects)
    } else {
      motion.responded(to: request.sent)
    }
    polling.responded(to: request, isFirst: isFirst, noise: session.runsOfNoise, at: now, &publisher, &effects)
  }

  /// Passes a response to the components; returns false if it is invalid.
  private mutating func handleResponse(
    _ command: VESCCommand, _ payload: ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects
  ) -> Bool {
    switch command {
    case .firmware:
      guard let firmware = VESCFirmware(payload) else { return false }
      polling.identified()
      telemetry.publish(firmware, &publisher, &effects)
    case .values, .setup, .selectSetup:
      let content = telemetry.read(command, payload, lacksSetup: polling.lacksSetup, at: now, &publisher, &effects)
      if content == .invalid { return false }
      if let count = telemetry.values[.vescs] { queue.vescsCounted(count) }
      if content == .valuesAfterRestart { queue.vescBeganToRespond(&publisher, &effects) }
      if command != .selectSetup { queue.publishMode(&publisher, &effects) }
    case .limits:
      guard let board = VESCBoard(payload) else { return false }
      if telemetry.take(board.geometry) { publisher.forget() }
      queue.limitsRead(board, &publisher, &effects)
    case .setLimits: queue.limitsWritten()
    case .pingCAN: queue.scanned(payload, &effects)
    default: return false
    }
    return true
  }

  private mutating func timedOut(_ command: VESCCommand, at now: Instant, _ effects: inout Effects) {
    // A complete response may follow a false start in the buffer.
    while let payload = session.nextPayloadAfterTimeout() {
      received(payload, at: now, &effects)
      if session.request == nil { return }
    }
    let isSilent = session.timedOut(command)
    polling.timedOut(command, noise: session.runsOfNoise, at: now, &publisher, &effects)
    queue.timedOut(command, lacksSetup: polling.lacksSetup, &publisher, &effects)
    guard isSilent else { return }
    let reason = session.fellSilent(at: now)
    motion.revoke("the VESC does not respond", at: now, &publisher, &effects)
    queue.vescFellSilent(reason, &effects)
    polling.forget()
    telemetry.forget()
    publisher.vescFellSilent(reason, &effects)
    queue.publishMode(&publisher, &effects)
  }

  // MARK: Commands and the link

  private mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    func refuse(_ error: CommandError) { effects.append(.complete(id, .failure(error))) }
    if session.isClosing { return refuse(.notConnected("the link is being closed")) }
    switch command {
    case .set(let property, let value):
      switch VESCSignal(rawValue: property) {
      case .mode: queue.setMode(value, for: id, isReachable: session.unavailability == nil, &publisher, &effects)
      case let signal? where VESCSignal.targets.contains(signal): motion.set(signal, value, for: id, at: now, &effects)
      default: refuse(.refused(code: .readOnly, "the property is read-only"))
      }
    case .run(action: 0, _):
      if let reason = session.unavailability { return refuse(.notConnected(reason)) }
      queue.scan(for: id, &effects)
    case .run: refuse(.refused(code: .notSupported, "no such action"))
    }
  }

  private mutating func restore(_ values: [String: [UInt8]], _ effects: inout Effects) {
    for counter in [VESCSignal.polls, .missed, .timeouts, .badFrames] { publisher.publish(counter, .int(0), &effects) }
    queue.restore(values)
    telemetry.restore(values, &publisher, &effects)
    motion.withdrawTargets(&publisher, &effects)
    queue.publishMode(&publisher, &effects)
  }

  private mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    if session.isUp { forgetLink("the link was reopened", at: now, &effects) }
    session.linkCameUp()
    publisher.forget()
    motion.linkCameUp(at: now, &publisher, &effects)
    queue.publishMode(&publisher, &effects)
    polling.linkCameUp(at: now)
  }

  /// Resets the components after the session has lost its link.
  private mutating func forgetLink(_ reason: String, at now: Instant, _ effects: inout Effects) {
    motion.linkWentDown(reason, at: now, &publisher, &effects)
    queue.linkWentDown(reason, &effects)
    polling.forget()
    telemetry.forget()
    telemetry.store(&effects)
    publisher.forget()
  }

  /// Stops the daemon's work; with a link, motion is stopped first.
  private mutating func stop(at now: Instant, _ effects: inout Effects) {
    session.close()
    queue.shutDown(.notConnected("the link is being closed"), &effects)
    motion.revoke("the link is being closed", at: now, &publisher, &effects)
    telemetry.store(&effects)
  }

  private mutating func shutDown(_ effects: inout Effects) {
    session.closed()
    motion.shutDown()
    effects.append(.stopped)
  }
}
