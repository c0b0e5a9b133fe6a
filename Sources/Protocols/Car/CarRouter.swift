// Owns the components of the `rc-car` machine, and passes the results of one to the others: session changes, timeouts, the car's messages
// and completed writes. It has no state of its own.

struct CarRouter: Sendable {
  private(set) var session = CarSession()
  private(set) var reader = CarReader()
  private(set) var motion: CarMotion
  private(set) var features: CarFeatures

  init(_ options: CarOptions) { (motion, features) = (CarMotion(options), CarFeatures(options)) }

  var context: CarContext { CarContext(session, features) }

  mutating func restore(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    motion.restore(stored, context, &effects)
    reader.publishInitialValues(&effects)
    features.restore(stored, &effects)
  }

  // MARK: Session

  mutating func linkUp(at now: Instant, _ effects: inout Effects) {
    if session.isUp { linkDown("the link was reopened", at: now, &effects) }
    features.linkUp(&effects)
    session.linkUp(at: now, &effects)
    motion.linkUp(context, at: now, &effects)
  }

  /// Handles the loss of the link, and the end of the shutdown sequence. After the sequence, the link is closed immediately: if the car
  /// closed it first, the car's restarted program could not bind the port.
  mutating func linkDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    let isClosing = session.isClosing
    let reason = isClosing ? CarSession.closingMessage : reason
    if session.isUp {
      motion.linkDown(reason, context, at: now, &effects)
      features.failCommands(.notConnected(reason), &effects)
      reader.reset()
    }
    session.linkDown(reason)
    motion.publish(context, &effects)
    if isClosing { effects.append(.stopped) }
  }

  /// Resets a link that can no longer be used.
  private mutating func resetLink(_ reason: String, at now: Instant, _ effects: inout Effects) {
    linkDown(reason, at: now, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  /// Begins the shutdown sequence (Stop, Stop, Disconnect), because the daemon is shutting down or a client disconnects the device.
  mutating func beginShutdown(at now: Instant, _ effects: inout Effects) {
    guard session.isUp else { return effects.append(.stopped) }
    if session.isClosing { return }
    motion.prepareShutdown(CarSession.closingMessage, context, at: now, &effects)
    features.failCommands(.notConnected(CarSession.closingMessage), &effects)
    reader.reset()
    motion.stopCar(.notConnected(CarSession.closingMessage), times: 2, context, at: now, &effects)
    session.beginShutdown(at: now)
  }

  // MARK: Time

  mutating func expireLease(at now: Instant, _ effects: inout Effects) { motion.expireLease(context, at: now, &effects) }

  mutating func expire(at now: Instant, _ effects: inout Effects) {
    motion.expire(context, at: now, &effects)
    if motion.sender.write.isOverdue(at: now) {
      return session.isClosing ? linkDown(CarSession.closingMessage, at: now, &effects) : resetLink("write timeout", at: now, &effects)
    }
    switch session.expire(at: now, &effects) {
    case .greeting:
      motion.carDidNotRespond(context, &effects)
      features.withdraw(CarSession.silentMessage, &effects)
    case .closing: linkDown(CarSession.closingMessage, at: now, &effects)
    case .nothing where session.isReady:
      if features.status.isOverdue(at: now) { reader.note("no response to Status", at: now, &effects) }
      if features.expire(at: now, &effects) { motion.replaceQueue(with: CarCamera.restart, CarCamera.noPicture, &effects) }
      while let due = features.makeDueRequest(motion.sender.queue, isDriven: motion.driving.isLeaseHeld, at: now) {
        motion.addIfPossible(due)
      }
      motion.checkLiveness(context, at: now, &effects)
    case .nothing: break
    }
  }

  /// Sends what is due, and sets last-will frames, status and fault.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    if session.isReady, let queued = features.makeModeInfoRequest(motion.sender.queue, &effects) { motion.addIfPossible(queued) }
    if motion.advance(context, at: now, &effects) { features.videoRequested(at: now, &effects) }
    motion.renewLastWill(context, &effects)
    CarCondition.publish(session, motion, features, &effects)
  }

  // MARK: Messages

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard session.isUp, !session.isClosing || motion.awaitsResponse else { return }
    var rest = bytes[...]
    while let report = reader.next(&rest, at: now, &effects) {
      motion.received(report, context, at: now, &effects)
      let isExpected = features.received(report, at: now, &effects)
      if !isExpected { reader.note("ignored: unexpected description of a mode", at: now, &effects) }
      messageReceived(at: now, &effects)
    }
    let latest = reader.finish(&effects)
    features.received(modes: latest.modes, at: now, &effects)
    motion.received(latest, context, at: now, &effects)
    features.received(status: latest.status, &effects)
  }

  private mutating func messageReceived(at now: Instant, _ effects: inout Effects) {
    if session.isReady { return features.carResponded(&effects) }
    guard session.messageReceived(&effects) else { return }
    features.sessionBegan(at: now, &effects)
    motion.sessionBegan(context, at: now, &effects)
  }

  /// Handles the end of a write; `failure` is nil if the link has accepted the message.
  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    let result = motion.sent(id, failure, context, at: now, &effects)
    switch result {
    case .shutDown: resetLink("shutdown command sent", at: now, &effects)
    case .disconnected: linkDown(CarSession.closingMessage, at: now, &effects)
    default: features.sent(result, at: now, &effects)
    }
  }

  mutating func cameraLinkChanged(_ change: LinkState, at now: Instant, _ effects: inout Effects) {
    if let request = features.cameraLinkChanged(change, at: now, &effects) { effects.send(.video, request, motion.drawSendID()) }
  }

  mutating func received(picture bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard let message = features.received(picture: bytes, at: now, &effects) else { return }
    reader.note("the camera's server: \(message)", at: now, &effects)
    features.retryCamera(at: now, &effects)
  }

  // MARK: Clients and the disk

  mutating func perform(_ command: CarCommand, at now: Instant, _ effects: inout Effects) {
    command.perform(on: &motion, &features, context, at: now, &effects)
  }

  mutating func beginLease(_ deadline: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    motion.beginLease(deadline, refusal: session.unavailability ?? features.drivingRefusal, at: now, &effects)
  }

  mutating func endLease(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if motion.driving.isLeaseHeld { motion.endLease(reason, context, at: now, &effects) }
  }

  mutating func cancel(_ id: CommandID) {
    motion.cancel(id)
    features.cancel(id)
  }

  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) { features.stored(key, failure, &effects) }
}
