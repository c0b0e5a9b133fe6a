// Decides what CarMotion sends next: stops first, then commands, then tilts, with one write in flight at a time. `nextWake` and `advance`
// take their times from the same functions. Nothing in this file changes the state of CarMotion.
// Source: AutoTT, TCP.py, Modes.py and Steering.py.

/// The state of other components on which CarMotion depends.
struct CarContext: Sendable {
  let session: CarSession
  /// The current mode; nil if it is unknown.
  let mode: Int?
  /// Whether the car ignores commands, because its camera is starting.
  let isCameraBlocking: Bool
  /// The time until which the car may be busy with a status request; nil if it is not.
  let statusDeadline: Instant?
}

extension CarContext {
  init(_ session: CarSession, _ features: CarFeatures) {
    self.init(
      session: session, mode: features.modes.current, isCameraBlocking: features.camera.isBlocking,
      statusDeadline: features.status.deadline)
  }
}

extension CarMotion {
  /// The kind of the next write.
  enum WriteKind { case stop, disconnect, command, tilt, livenessCheck }

  private var queue: CarSendQueue { sender.queue }
  private var confirmation: CarStopConfirmation { sender.confirmation }

  /// The next time at which something is due.
  func nextWake(_ context: CarContext) -> Instant? {
    var due = [driving.expires, standstill.deadline, sender.write.deadline ?? nextWrite(context)?.due]
    if context.session.isUp { due.append(sender.confirmationDue) }
    if context.session.isReady { due += [livenessDue(context), hungAt] }
    return due.compactMap(\.self).min()
  }

  /// The next write, and when it is due, if the link is free then.
  func nextWrite(_ context: CarContext) -> (kind: WriteKind, due: Instant)? {
    if !queue.stops.isEmpty { return (.stop, queue.stopDue) }
    if case .closing(let until) = context.session.state { return (.disconnect, disconnectDue(until)) }
    let stream = streamDue(context)
    // A command precedes the next tilt, unless the tilt is due earlier.
    if let command = commandDue(context), stream.map({ command <= $0.due }) ?? true {
      return (.command, max(command, queue.tiltPauseEnd))
    }
    return stream
  }

  /// When Disconnect is sent: as late as possible if the car has not confirmed Stop.
  private func disconnectDue(_ until: Instant) -> Instant {
    confirmation.isReliable && !confirmation.awaitsStop ? queue.quietUntil : max(queue.quietUntil, until &- 200 * .millisecond)
  }

  /// When the first command is due; nil if none is queued, or the car would ignore it now.
  private func commandDue(_ context: CarContext) -> Instant? {
    guard !context.isCameraBlocking, !waitsToContinue, let due = queue.commandDue(isStreaming: isStreaming(context)) else { return nil }
    // A status request blocks the car's receiving thread. Commands that arrive in the meantime are read as one block, and a command that
    // fails discards the rest of the block. While the lease is held, no wait is needed, because the car stands still until it reads
    // Continue.
    return driving.isLeaseHeld ? due : max(due, context.statusDeadline ?? .min)
  }

  /// Whether Continue is next, but the car has not responded since the mode change.
  private var waitsToContinue: Bool { !confirmation.isReliable && queue.isContinueNext }

  /// Whether tilts are sent, apart from pauses for commands.
  private func isStreaming(_ context: CarContext) -> Bool { driving.isRunning && CarModes.usesTilt(in: context.mode, dialect) }

  /// The next tilt, or the next liveness check while the car drives autonomously, without tilts.
  private func streamDue(_ context: CarContext) -> (kind: WriteKind, due: Instant)? {
    if isStreaming(context) { return driving.due.map { (.tilt, max($0, queue.quietUntil)) } }
    return driving.isRunning ? (.livenessCheck, max(liveness.autonomousDue, queue.quietUntil)) : nil
  }

  /// Whether the next tilt must wait for a command or a stop. The commands of the waiting setpoints then complete before the setpoints
  /// are sent.
  func tiltsMustWait(_ context: CarContext, at now: Instant) -> Bool {
    driving.permit == .starting || !queue.stops.isEmpty || now < queue.quietUntil || commandDue(context).map { now >= $0 } ?? false
  }

  /// When the next liveness check is due while tilts are sent; nil if none is due, or one is queued.
  func livenessDue(_ context: CarContext) -> Instant? {
    isStreaming(context) && !queue.contains(.livenessCheck) ? liveness.due : nil
  }

  /// When the car counts as hung; nil if it is not driven, or no response is awaited.
  var hungAt: Instant? { driving.isRunning ? liveness.deadline : nil }

  /// The messages that stop the car, and a request for a confirmation. In modes in which Stop fails, a mode change stops the car.
  func stopMessages(_ times: Int, _ context: CarContext) -> [CarOutboundMessage] {
    let stops = [CarOutboundMessage](repeating: .stop, count: times)
    let isBroken = CarModes.stopIsBroken(in: context.mode, dialect)
    return (isBroken ? [.stop, .chosenMode(0)] + stops.dropFirst() : stops) + [.modes]
  }

  /// The fault of a car that has not responded for too long; nil if there is none.
  var fault: String? { confirmation.fault(isStandingStill: standstill.isConfirmed) }

  /// Why the car cannot be driven now, or nil if it can.
  var drivingRefusal: String? {
    if queue.contains(.shutDown) { return "the car is being shut down" }
    if let fault { return fault }
    if driving.rejectsTilt { return "the car does not accept tilt (GyroStop): wait until it requests it again" }
    if driving.interval == nil { return "the car has not requested tilt yet: wait, or set tilt-rate in the configuration" }
    return nil
  }

  /// The remark in the reply to a setpoint while setpoints have no effect; nil if they have an effect.
  var remark: String? {
    driving.permit == .starting && !confirmation.isReliable ? "the car is changing its mode: wait until it responds" : nil
  }

  /// The buttons that are pressed now, or by a queued message.
  var sidesToRelease: [CarSide] {
    CarSide.allCases.filter { buttons.pressed.contains($0) || sender.queue.contains(.button($0, true)) }
  }

  /// Whether a confirmation is awaited, because a command or a Stop may not have been executed.
  var awaitsResponse: Bool { !confirmation.isReliable || confirmation.awaitsStop }

  // MARK: Published values

  /// Publishes whether the car is running, or withdraws the property if this is unknown.
  func publish(_ context: CarContext, _ effects: inout Effects) {
    if driving.isRunning {
      effects.publish(.running, .bool(true))
    } else if let uncertainty = standstill.uncertainty(context.session.state) {
      effects.withdraw(.running, uncertainty)
    } else {
      effects.publish(.running, .bool(false))
    }
    if !driving.isLeaseHeld { withdrawTilts(context, &effects) }
  }

  /// Withdraws the state of the car, which is unknown: another client may control the car.
  func withdraw(_ reason: String, _ context: CarContext, _ effects: inout Effects) {
    publish(context, &effects)
    buttons.withdraw(reason, &effects)
  }

  func withdrawTilts(_ context: CarContext, _ effects: inout Effects) {
    for property in CarProperty.tilts { effects.withdraw(property, standstill.uncertainty(context.session.state) ?? "not driven") }
  }
}
