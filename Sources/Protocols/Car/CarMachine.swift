// The `car` machine: routes inputs to its components, and the results of one component to the others. The car has no watchdog, does not
// reassemble split segments, discards the data after a command that it cannot handle, and drives on when its client disconnects. So
// each frame is one write, commands are sent alone, no tilt is repeated after the lease, and Stop is sent first whenever driving ends.
// Source: task123/AutoTT and task123/AutoTTApp at their last commits; the README of the app for the documented dialect.

/// Drives an AutoTT car.
public struct CarMachine: Machine {
  private var session = CarSession()
  private(set) var reader = CarReader()
  private(set) var motion: CarMotion
  private(set) var features: CarFeatures

  public var schema: Schema { features.status.schema }

  /// Creates a machine from the options of `Kind.car`.
  public init(_ setup: Setup) {
    let options = CarOptions(setup)
    (motion, features) = (CarMotion(options), CarFeatures(options))
  }

  public var nextWake: Instant? {
    if features.status.hasEarly { return .min }
    guard session.isUp else { return nil }
    return [
      session.deadline, motion.nextWake(context),
      session.isReady ? features.nextWake(motion.sender.queue, isDriven: motion.driving.isHeld) : nil,
    ].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    if features.status.hasEarly { features.publishEarly(&effects) }
    switch input {
    // Overdue messages must not be sent over a lost link.
    case .linkChanged(.main, _): break
    // If the write succeeded late because the system was suspended, the link must not be reset: the car would accept no other client.
    case .sent(let id, _) where motion.sender.write.isInFlight(id): motion.expireLease(context, at: now, &effects)
    default: expire(at: now, &effects)
    }
    switch input {
    case .started(let stored, _):
      motion.restore(stored, context, &effects)
      reader.start(&effects)
      features.start(stored, &effects)
    case .linkChanged(.main, .up): linkUp(at: now, &effects)
    case .linkChanged(.main, .down(let reason)): linkDown(reason, at: now, &effects)
    case .linkChanged(.video, let change):
      if let request = features.cameraLinkChanged(change, at: now, &effects) { effects.send(.video, request, motion.drawSendID()) }
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .received(.video, let bytes):
      guard case .retry(let message) = features.received(picture: bytes, &effects) else { break }
      reader.note("the camera's server: \(message)", at: now, &effects)
      features.retryCamera(at: now, &effects)
    case .sent(let id, let failure): sent(id, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id):
      motion.forget(id)
      features.forget(id)
    case .stored(let key, let failure): features.stored(key, failure, &effects)
    case .leaseBegan(let deadline):
      let reason = session.unavailability ?? (features.status.isUnanswered ? CarMotion.lost : features.camera.drivingRefusal)
      if let reason { effects.append(.leaseLost(reason)) } else { motion.beginLease(deadline, at: now, &effects) }
    case .leaseEnded(let reason): if motion.driving.isHeld { motion.endLease(reason, context, at: now, &effects) }
    case .stopping: end(at: now, &effects)
    case .linkChanged, .received, .observed, .response, .rows, .time, .wake: break
    }
    if session.isReady, let queued = features.takeModeInfo(motion.sender.queue, &effects) { motion.addIfPossible(queued) }
    if motion.advance(context, at: now, &effects) { features.videoRequested(at: now, &effects) }
    motion.renewLastWill(context, &effects)
    CarCondition.publish(session, motion, features, &effects)
  }

  private var context: CarContext {
    CarContext(
      session: session, mode: features.modes.current, isCameraBlocking: features.camera.isBlocking,
      statusDeadline: features.status.deadline)
  }

  // MARK: Session

  private mutating func linkUp(at now: Instant, _ effects: inout Effects) {
    if session.isUp { linkDown("the link was reopened", at: now, &effects) }
    features.linkUp(&effects)
    session.linkUp(at: now, &effects)
    motion.linkUp(context, at: now, &effects)
  }

  private mutating func linkDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if session.isEnding { return ended(&effects) }
    if session.isUp {
      motion.linkLost(reason, context, at: now, &effects)
      features.fail(.notConnected(reason), &effects)
      reader.reset()
    }
    session.linkDown(reason)
    motion.publish(context, &effects)
  }

  /// Resets a link that cannot be used any more.
  private mutating func resetLink(_ reason: String, at now: Instant, _ effects: inout Effects) {
    linkDown(reason, at: now, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  /// Begins the shutdown sequence, because the daemon stops or a client disconnects the device: Stop, Stop, Disconnect.
  private mutating func end(at now: Instant, _ effects: inout Effects) {
    guard session.isUp else { return effects.append(.stopped) }
    if session.isEnding { return }
    motion.end(CarSession.closing, context, at: now, &effects)
    features.fail(.notConnected(CarSession.closing), &effects)
    reader.reset()
    motion.halt(.notConnected(CarSession.closing), times: 2, context, at: now, &effects)
    session.end(at: now)
  }

  /// Ends the shutdown sequence. The link is closed at once: if the car closed first, its next program could not bind the port.
  private mutating func ended(_ effects: inout Effects) {
    motion.ended(CarSession.closing, &effects)
    features.fail(.notConnected(CarSession.closing), &effects)
    reader.reset()
    session.linkDown(CarSession.closing)
    motion.publish(context, &effects)
    effects.append(.stopped)
  }

  private mutating func expire(at now: Instant, _ effects: inout Effects) {
    motion.expire(context, at: now, &effects)
    if motion.sender.write.isOverdue(at: now) {
      return session.isEnding ? ended(&effects) : resetLink("write timeout", at: now, &effects)
    }
    switch session.expire(at: now, &effects) {
    case .greeting:
      motion.becameSilent(context, &effects)
      features.withdraw(CarSession.silence, &effects)
    case .ending: ended(&effects)
    case .nothing where session.isReady:
      if features.status.isOverdue(at: now) { reader.note("no response to Status", at: now, &effects) }
      if features.expire(at: now, &effects) { motion.replaceQueue(with: CarCamera.restart, CarCamera.noPicture, &effects) }
      while let queued = features.takeDue(motion.sender.queue, isDriven: motion.driving.isHeld, at: now) { motion.addIfPossible(queued) }
      motion.checkLiveness(context, at: now, &effects)
    case .nothing: break
    }
  }

  // MARK: Messages

  private mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard session.isUp, !session.isEnding || motion.awaitsResponse else { return }
    var rest = bytes[...]
    while let report = reader.next(&rest, at: now, &effects) {
      switch report {
      case .tiltInterval(let interval): motion.tiltRequested(interval)
      case .tiltStopped: motion.tiltRefused(context, at: now, &effects)
      case .modeInfo(let body):
        let isExpected = features.received(modeInfo: body, &effects)
        if !isExpected { reader.note("ignored: unexpected description of a mode", at: now, &effects) }
      case .buttons(let isEnabled): motion.buttonsEnabled(isEnabled)
      case .connectionTest(let seconds): features.connectionTestRequested(seconds, at: now)
      case .other: break
      }
      responded(at: now, &effects)
    }
    let latest = reader.finish(&effects)
    features.received(modes: latest.modes, &effects)
    motion.received(latest, context, at: now, &effects)
    features.received(status: latest.status, &effects)
  }

  private mutating func responded(at now: Instant, _ effects: inout Effects) {
    if session.isReady { return features.responded(&effects) }
    guard session.responded(&effects) else { return }
    features.begin(at: now, &effects)
    motion.begin(context, at: now, &effects)
  }

  /// Handles the end of a write; `failure` is nil if the link has accepted the message.
  private mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    let action = motion.sent(id, failure, context, at: now, &effects)
    switch action {
    case .shutDown: resetLink("shutdown command sent", at: now, &effects)
    case .disconnected: ended(&effects)
    default: features.sent(action, at: now, &effects)
    }
  }

  // MARK: Commands

  /// Each command ends in exactly one `complete`, unless its caller has disconnected. Commands for the car are rejected while it does
  /// not respond; settings of the daemon are not.
  private mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    switch command {
    case .set(let property, let value):
      guard let signal = CarSignal(rawValue: property), schema.properties[property].access == .write else {
        return effects.refuse(command: id, code: .readOnly, "the property is read-only")
      }
      if features.setSetting(signal, value, for: id, isDriven: motion.driving.isRunning, &effects) { return }
      if let reason = session.unavailability { return effects.fail(command: id, .notConnected(reason)) }
      set(signal, value, for: id, at: now, &effects)
    case .run(let action, let arguments):
      guard let action = CarAction(rawValue: action) else {
        return effects.refuse(command: id, code: .notSupported, "no such action")
      }
      if action == .neutral {
        return features.setNeutral(arguments["position"], motion.driving, for: id, &effects)
      }
      // Stop is sent even if the car has not responded yet.
      if action == .stop, session.isUp, !session.isEnding { return motion.stop(for: id, context, at: now, &effects) }
      if let reason = session.unavailability {
        return effects.fail(command: id, .notConnected(action == .stop ? motion.standstill.refusal(reason) : reason))
      }
      run(action, arguments, for: id, at: now, &effects)
    }
  }

  private mutating func set(_ signal: CarSignal, _ value: Value, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    switch (signal, value) {
    case (.mode, .string(let name)):
      switch features.modes.find(name) {
      case .failure(let error): effects.fail(command: id, error)
      case .success(let number): motion.chooseMode(number, for: id, context, at: now, &effects)
      }
    case (.leftButton, .bool(let isDown)): motion.press(.left, isDown, for: id, context, &effects)
    case (.rightButton, .bool(let isDown)): motion.press(.right, isDown, for: id, context, &effects)
    default:
      let queued = features.set(
        signal, value, for: id, isDriven: motion.driving.isHeld, hasRoom: motion.sender.queue.hasRoom, at: now, &effects)
      if let queued { motion.add(queued, &effects) }
    }
  }

  private mutating func run(
    _ action: CarAction, _ arguments: [String: Value], for id: CommandID, at now: Instant, _ effects: inout Effects
  ) {
    switch action {
    case .tilt: motion.tilt(arguments, features.settings, for: id, context, at: now, &effects)
    case .proceed: motion.proceed(for: id, &effects)
    case .shutDown: motion.shutDown(for: id, context, at: now, &effects)
    default:
      let queued = features.run(action, arguments, for: id, isDriven: motion.driving.isHeld, &effects)
      if let queued { motion.add(queued, &effects) }
    }
  }
}
