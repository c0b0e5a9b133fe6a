// Driving: start and end of the lease, and conversion of set-points to tilts. Whatever ends a lease stops the car in the same turn.
// Nothing moves without a lease, or on its own after a stop.

extension CarMachine {
  mutating func leaseBegan(_ deadline: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    if let reason = reasonNotToDrive { return effects.append(.leaseLost(reason)) }
    driving.begin(deadline: deadline, at: now)
    publishTilts(&effects)
  }

  /// Why driving is not possible now.
  private var reasonNotToDrive: String? {
    if let reason = session.unavailability { return reason }
    if status.isUnanswered { return Self.lost }
    if let reason = camera.drivingRefusal { return reason }
    if queue.commands.contains(where: { $0.purpose == .shutDown }) { return "the car is being shut down" }
    if let trouble { return trouble }
    if driving.isMuted { return "the car does not accept tilt (GyroStop): wait until it requests it again" }
    if driving.interval == nil { return "the car has not requested tilt yet: wait, or set tilt-rate in the configuration" }
    return nil
  }

  /// Ends the lease from our side.
  mutating func loseLease(_ reason: String, at now: Instant, _ effects: inout Effects) {
    endLease(reason, at: now, &effects)
    effects.append(.leaseLost(reason))
  }

  /// Stops the car after the lease has ended for any reason.
  mutating func endLease(_ reason: String, at now: Instant, _ effects: inout Effects) {
    halt(.refused(code: "lease-lost", reason), at: now, &effects)
    for id in driving.release() { effects.append(.complete(id, .failure(.refused(code: "lease-lost", reason)))) }
    publishTilts(&effects)
  }

  /// Stops the car now, repeatedly. Queued motion commands fail with this error.
  mutating func halt(_ error: CommandError, times: Int = 3, at now: Instant, _ effects: inout Effects) {
    queue.stop(stopWords(times), at: now)
    confirmation.stopped()
    for id in driving.halt() { effects.append(.complete(id, .failure(error))) }
    for queued in queue.remove(where: { $0.purpose == .proceed }) {
      if let id = queued.id { effects.append(.complete(id, .failure(error))) }
    }
    publishMotion(&effects)
    // As documented the buttons may steer.
    if options.dialect == .documented { releaseButtons(error, &effects) }
  }

  /// Sends the messages that stop the car, and requests a confirmation. Where Stop fails in the car's program, a mode change stops it.
  func stopWords(_ times: Int) -> [CarOutboundMessage] {
    let stops = [CarOutboundMessage](repeating: .stop, count: times)
    return (stopIsBroken(in: modes.current) ? [.stop, .chosenMode(0)] + stops.dropFirst() : stops) + [.modes]
  }

  /// When the next request for a confirmation is sent, after the stop messages.
  var askTurn: Instant? { session.isUp && queue.stops.isEmpty ? confirmation.due : nil }

  /// Repeats the request, and Stop if the car may have missed it.
  mutating func askOn(at now: Instant) {
    guard let due = askTurn, now >= due else { return }
    confirmation.again()
    if confirmation.owesStop {
      queue.stop([.stop, .modes], at: now)
    } else if !session.isEnding, !queue.commands.contains(where: { $0.purpose == .greeting }) {
      queue.ask()
    }
  }

  func stopIsBroken(in mode: Int?) -> Bool { CarModes.stopIsBroken(in: mode, options.dialect) }

  /// The link has accepted a stop message.
  mutating func stopSent(_ word: CarOutboundMessage, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    queue.stopAccepted(failure, at: now)
    guard failure == nil else { return }
    switch word {
    case .chosenMode(let number): enteredMode(number, &effects)
    case .modes: confirmation.asked(at: now)
    default: owesStop = false
    }
  }

  // MARK: Set-points

  mutating func tilt(_ arguments: [String: Value], for id: CommandID, at now: Instant, _ effects: inout Effects) {
    guard driving.isHeld else {
      let message = "motion lease required: run \"vehiclectl drive\""
      return effects.append(.complete(id, .failure(.refused(code: "no-lease", message))))
    }
    guard let roll = arguments["roll"]?.number, let pitch = arguments["pitch"]?.number else {
      let missing = arguments["roll"]?.number == nil ? "roll" : "pitch"
      return effects.append(.complete(id, .failure(.invalid(argument: missing, "is missing: give it in rad"))))
    }
    let attitude = CarAttitude(roll: roll, pitch: pitch, yaw: arguments["yaw"]?.number ?? 0)
    if let (name, message) = attitude.wrongArgument {
      return effects.append(.complete(id, .failure(.invalid(argument: name, message))))
    }
    driving.hold(attitude, at: now)
    switch driving.permit {
    case .none:
      let message = "the car was stopped: the lease is still held; use continue to drive on"
      return effects.append(.complete(id, .success(Report(text: message))))
    case .fresh: proceed(for: nil, &effects)
    case .granting, .running: break
    }
    guard CarModes.takesTilt(in: modes.current, options.dialect) else {
      return effects.append(.complete(id, .success(Report(text: remark))))
    }
    let neutral = arguments["relative"] == .bool(true) ? .level : settings.neutral
    let tilt = attitude.tilt(neutral: neutral, sensitivity: settings.sensitivity)
    if let replaced = driving.aim(tilt, for: id) { effects.append(.complete(replaced, .success(Report()))) }
  }

  /// The link has accepted a tilt, or failed. A failure is serious, because the car keeps the previous tilt.
  mutating func tiltSent(_ tilt: CarTilt, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    let answered = driving.takeInFlight()
    for id in answered { effects.append(.complete(id, failure.map { .failure(.notConnected($0)) } ?? .success(Report()))) }
    if let failure {
      guard driving.isHeld else { return }
      confirmation.expectLoss()
      loseLease(failure, at: now, &effects)
    } else if driving.isHeld {
      for (signal, angle) in zip(CarSignal.tilts, [tilt.roll, tilt.pitch, tilt.yaw]) {
        publish(signal, .float(Double(angle) / CarNumber.scale), &effects)
      }
    }
  }

  private mutating func publishTilts(_ effects: inout Effects) {
    for signal in CarSignal.tilts { withdraw(signal, driving.isHeld ? "no set-point" : doubt ?? "not driven", &effects) }
  }

  // MARK: Stop and Continue

  /// Sends Continue, for a driver or for the first set-point.
  mutating func proceed(for id: CommandID?, _ effects: inout Effects) {
    guard driving.isHeld else {
      guard let id else { return }
      let message = "motion lease required: run \"vehiclectl drive\""
      return effects.append(.complete(id, .failure(.refused(code: "no-lease", message))))
    }
    if add(CarQueuedCommand(.proceed, [.proceed], for: id), &effects) { driving.grant() }
  }
}
