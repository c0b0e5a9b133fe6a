// What is sent next: a stop before a command before a tilt, one write in flight at a time. `nextWake` and `advance` derive their times
// from the same functions. Reads the state of motion and publishes it, but does not change it.
// Source: autott.md §8 and §9.

/// What motion depends on in the other components.
struct CarContext: Sendable {
  let session: CarSession
  /// The current mode; nil: unknown.
  let mode: Int?
  /// The car ignores commands while its camera starts.
  let isCameraBlocking: Bool
  /// Until then the car may be busy with a status request.
  let statusDeadline: Instant?
}

extension CarMotion {
  /// The kinds of a write.
  enum WriteKind { case stop, disconnect, command, tilt, livenessCheck }

  private var queue: CarSendQueue { sender.queue }
  private var confirmation: CarStopConfirmation { sender.confirmation }

  /// The next time at which motion has something to do.
  func nextWake(_ context: CarContext) -> Instant? {
    var due = [driving.expires, standstill.deadline, sender.write.deadline ?? nextWrite(context)?.due]
    if context.session.isUp { due.append(sender.confirmationDue) }
    if context.session.isReady { due += [livenessDue(context), hungAt] }
    return due.compactMap(\.self).min()
  }

  /// The next write, and when it is possible, once the link is free.
  func nextWrite(_ context: CarContext) -> (kind: WriteKind, due: Instant)? {
    if !queue.stops.isEmpty { return (.stop, queue.stopDue) }
    if case .ending(let until) = context.session.state { return (.disconnect, disconnectDue(until)) }
    let stream = streamDue(context)
    // The first command is sent before the next tilt. Once it is due, at most one late tilt is sent.
    if let command = commandDue(context), stream.map({ command <= $0.due }) ?? true {
      return (.command, max(command, queue.tiltsAreThrough))
    }
    return stream
  }

  /// Disconnect is sent as late as possible if the car may have missed Stop.
  private func disconnectDue(_ until: Instant) -> Instant {
    confirmation.isReliable && !confirmation.owesStop ? queue.quietUntil : max(queue.quietUntil, until &- 200 * .millisecond)
  }

  /// When the first command is due; nil: there is none, or the car would ignore it.
  private func commandDue(_ context: CarContext) -> Instant? {
    guard !context.isCameraBlocking, !waitsToContinue, let due = queue.turn(isStreaming: isStreaming(context)) else { return nil }
    // The car runs its programs on the thread that reads: data that arrives meanwhile is read at once, and the rest after a command
    // that it cannot handle is lost. A driver's commands are not of that kind: the car stands until it reads Continue.
    return driving.isHeld ? due : max(due, context.statusDeadline ?? .min)
  }

  /// Continue is next, and the car has not responded since the mode change.
  private var waitsToContinue: Bool { !confirmation.isReliable && queue.isContinueNext }

  /// Tilts are sent, or would be if no command were queued.
  private func isStreaming(_ context: CarContext) -> Bool { driving.isRunning && CarModes.takesTilt(in: context.mode, dialect) }

  /// The next tilt. Where the car drives autonomously no tilt detects a lost car, so its modes are requested instead.
  private func streamDue(_ context: CarContext) -> (kind: WriteKind, due: Instant)? {
    if isStreaming(context) { return driving.due.map { (.tilt, max($0, queue.quietUntil)) } }
    return driving.isRunning ? (.livenessCheck, max(liveness.autonomousDue, queue.quietUntil)) : nil
  }

  /// A driver's next set-point must not be delayed by a command or a stop, so the waiting ones are completed early.
  func tiltsMustWait(_ context: CarContext, at now: Instant) -> Bool {
    driving.permit == .granting || !queue.stops.isEmpty || now < queue.quietUntil || commandDue(context).map { now >= $0 } ?? false
  }

  /// When the next request is due among tilts; nil: none, or one is queued.
  func livenessDue(_ context: CarContext) -> Instant? {
    isStreaming(context) && !queue.contains(.livenessCheck) ? liveness.due : nil
  }

  /// When the car counts as hung; nil: no response is missing.
  var hungAt: Instant? { driving.isRunning ? liveness.deadline : nil }

  /// The messages that stop the car, and a request for a confirmation. Where Stop fails in the car's program, a mode change stops it.
  func stopMessages(_ times: Int, _ context: CarContext) -> [CarOutboundMessage] {
    let stops = [CarOutboundMessage](repeating: .stop, count: times)
    let isBroken = CarModes.stopIsBroken(in: context.mode, dialect)
    return (isBroken ? [.stop, .chosenMode(0)] + stops.dropFirst() : stops) + [.modes]
  }

  /// The car has not responded for too long.
  var fault: String? { confirmation.fault(isStandingStill: standstill.isConfirmed) }

  /// Why the car cannot be driven now; nil: it can.
  var drivingRefusal: String? {
    if queue.contains(.shutDown) { return "the car is being shut down" }
    if let fault { return fault }
    if driving.isMuted { return "the car does not accept tilt (GyroStop): wait until it requests it again" }
    if driving.interval == nil { return "the car has not requested tilt yet: wait, or set tilt-rate in the configuration" }
    return nil
  }

  /// A remark for a driver whose set-point has no effect yet.
  var remark: String? {
    driving.permit == .granting && !confirmation.isReliable ? "the car is changing its mode: it drives once it responds" : nil
  }

  /// The buttons that are pressed after all queued messages.
  var sidesToRelease: [CarSide] {
    CarSide.allCases.filter { buttons.pressed.contains($0) || sender.queue.contains(.button($0, true)) }
  }

  /// A command or a Stop may not have been executed.
  var awaitsResponse: Bool { !confirmation.isReliable || confirmation.owesStop }

  // MARK: Published values

  /// Publishes the motion, as far as it is known.
  func publish(_ context: CarContext, _ effects: inout Effects) {
    if driving.isRunning {
      effects.publish(.running, .bool(true))
    } else if let doubt = standstill.doubt(context.session.state) {
      effects.withdraw(.running, doubt)
    } else {
      effects.publish(.running, .bool(false))
    }
    if !driving.isHeld { withdrawTilts(context, &effects) }
  }

  /// The state of the car is unknown: it may serve another client.
  func withdraw(_ reason: String, _ context: CarContext, _ effects: inout Effects) {
    publish(context, &effects)
    buttons.withdraw(reason, &effects)
  }

  func withdrawTilts(_ context: CarContext, _ effects: inout Effects) {
    for signal in CarSignal.tilts { effects.withdraw(signal, standstill.doubt(context.session.state) ?? "not driven") }
  }
}
