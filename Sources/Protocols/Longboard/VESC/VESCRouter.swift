// Owns the components of the `longboard` machine for a VESC, and passes the results of one to the others: changes of the link, responses,
// timeouts, and the shutdown sequence. It has no state of its own.

struct VESCRouter: Sendable {
  private(set) var session: VESCSession
  private(set) var motion: VESCMotion
  private(set) var requests: VESCRequests
  private var publisher: VESCPublisher

  init(_ options: VESCOptions, _ schema: Schema, _ polling: VESCPollScheduler) {
    (session, motion, publisher) = (VESCSession(options), VESCMotion(options), VESCPublisher(schema))
    requests = VESCRequests(options, schema, polling)
  }

  mutating func restore(_ values: [String: [UInt8]], _ effects: inout Effects) {
    requests.restore(values, &publisher, &effects)
    motion.withdrawTargets(&publisher, &effects)
    requests.queue.publishMode(&publisher, &effects)
  }

  // MARK: The link

  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    if session.isUp { resetComponents("the link was reopened", at: now, &effects) }
    session.linkCameUp()
    publisher.forgetReasons()
    motion.linkCameUp(at: now, &publisher, &effects)
    requests.linkCameUp(at: now, &publisher, &effects)
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    session.linkWentDown(reason)
    resetComponents(reason, at: now, &effects)
  }

  /// Resets the other components after the session has lost its link.
  private mutating func resetComponents(_ reason: String, at now: Instant, _ effects: inout Effects) {
    motion.linkWentDown(reason, at: now, &publisher, &effects)
    requests.linkWentDown(reason, &effects)
    publisher.forgetReasons()
  }

  /// Begins the shutdown of the daemon. If the link is up, motion is stopped first.
  mutating func beginShutdown(at now: Instant, _ effects: inout Effects) {
    session.beginShutdown()
    requests.failCommands(.notConnected("the link is being closed"), &effects)
    motion.revokeLease("the link is being closed", at: now, &publisher, &effects)
    requests.storeDistance(&effects)
  }

  // MARK: Sending

  /// Sends what is due, if the link is free: stop frames first, then setpoints, then requests.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    if session.isUp {
      if session.write != nil { return }
      if let due = motion.nextDue, now >= due {
        let purpose = motion.isStopping ? VESCSession.Write.Purpose.stop : .setPoint
        return session.send(motion.nextFrame(at: now), purpose, at: now, &effects)
      }
    }
    if session.isClosing {
      if !session.isUp || !motion.isStopping { endShutdown(&effects) }
      return
    }
    switch session.state {
    case .down, .waiting: break
    case .silent(let until): if now >= until { session.sendRequest(.firmware, at: now, &effects) }
    case .ready:
      if let next = requests.next(isEstablished: session.isEstablished, at: now) {
        session.sendRequest(next.command, next.frame, lateness: next.lateness, at: now, &effects)
      }
    }
  }

  private mutating func endShutdown(_ effects: inout Effects) {
    session.endShutdown()
    motion.endShutdown()
    effects.append(.stopped)
  }

  mutating func pollSlotPassed() { session.pollSlotPassed() }

  /// Handles the end of a write; `failure` is nil if the link has accepted it.
  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    switch session.endWrite(id) {
    case .stop: if failure == nil { motion.stopSent(at: now) }
    case .setPoint: motion.setPointSent(failure, &publisher, &effects)
    case .request, nil: break
    }
  }

  // MARK: Responses and timeouts

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    var rest = bytes[...]
    while !rest.isEmpty {
      session.append(&rest)
      while let payload = session.nextPayload() { received(payload, at: now, &effects) }
    }
  }

  private mutating func received(_ payload: ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects) {
    guard let request = session.request(answeredBy: payload),
      requests.received(request.command, payload.dropFirst(), at: now, &publisher, &effects)
    else { return }
    let isFirst = session.responseReceived()
    if isFirst { motion.vescBeganToRespond(at: now) } else { motion.responseReceived(toRequestAt: request.sent) }
    requests.responded(to: request, isFirst: isFirst, noise: session.runsOfNoise, at: now, &publisher, &effects)
  }

  mutating func expire(at now: Instant, _ effects: inout Effects) {
    motion.expire(at: now, &publisher, &effects)
    if let deadline = session.writeDeadline, now >= deadline {
      session.giveUp("write timeout")
      resetComponents("write timeout", at: now, &effects)
      return effects.append(.resetLink(.main, reason: "write timeout"))
    }
    guard let request = session.request else { return }
    if now < request.deadline { return requests.reportProgress(of: request.command, at: now, &effects) }
    // A complete response may follow a false start in the buffer.
    while let payload = session.nextPayloadAfterTimeout() {
      received(payload, at: now, &effects)
      if session.request == nil { return }
    }
    timedOut(request.command, at: now, &effects)
  }

  private mutating func timedOut(_ command: VESCCommand, at now: Instant, _ effects: inout Effects) {
    let isSilent = session.requestTimedOut(command)
    requests.timedOut(command, noise: session.runsOfNoise, at: now, &publisher, &effects)
    guard isSilent else { return }
    let reason = session.vescStoppedResponding(at: now)
    motion.revokeLease("the VESC does not respond", at: now, &publisher, &effects)
    requests.vescStoppedResponding(reason, &publisher, &effects)
  }

  /// Sets status, last-will frames and fault.
  mutating func publishStatus(_ effects: inout Effects) {
    let problem = requests.queue.problem
    effects.append(.status(VESCStatus(session, isDriven: motion.isLeaseHeld, hasProblem: problem != nil).rawValue))
    motion.updateLastWill(isUp: session.isUp, &effects)
    effects.append(.fault(session.problem ?? problem ?? requests.telemetry.fault))
  }

  // MARK: Clients and the disk

  mutating func setMode(_ value: Value, for id: CommandID, _ effects: inout Effects) {
    requests.setMode(value, for: id, isReachable: session.unavailability == nil, &publisher, &effects)
  }

  mutating func setTarget(_ property: VESCProperty, _ value: Value, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    motion.setTarget(property, value, for: id, at: now, &effects)
  }

  mutating func scan(for id: CommandID, _ effects: inout Effects) { requests.scan(for: id, &effects) }

  mutating func cancel(_ id: CommandID) {
    motion.cancel(id)
    requests.cancel(id)
  }

  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) {
    requests.stored(key, failure, &publisher, &effects)
  }

  mutating func beginLease(_ deadline: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    motion.beginLease(deadline: deadline, refusal: session.unavailability, at: now, &publisher, &effects)
  }

  mutating func endLease(_ reason: String, at now: Instant, _ effects: inout Effects) {
    motion.endLease(reason, at: now, &publisher, &effects)
  }
}
