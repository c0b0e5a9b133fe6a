// How the car is driven: the lease begins and ends here, set-points become tilts, and all that ends a lease stops the car in
// the same turn. It must never let anything move without a lease, nor go on by itself after a stop.

extension CarMachine {
  mutating func leaseBegan(_ deadline: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    if let reason = reasonNotToDrive { return effects.append(.leaseLost(reason)) }
    driving.begin(deadline: deadline, at: now)
    sayTilts(&effects)
  }

  /// Why nobody can drive now.
  private var reasonNotToDrive: String? {
    if let reason = reasonNotToAsk { return reason }
    if status.isUnanswered { return Self.lost }
    switch camera {
    case .starting: return "the camera is starting, and the car would not hear Stop: wait until it has"
    case .stuck: return "the car waits for its camera and would not hear Stop: wait until it answers, or restart its program"
    case .off, .on: break
    }
    if outbox.errands.contains(where: { $0.purpose == .shutDown }) { return "the car is being shut down" }
    if let trouble { return trouble }
    if driving.isMuted { return "the car wants no tilt now (GyroStop): wait until it asks for it again" }
    if driving.interval == nil { return "the car has not asked for tilt yet: wait, or set tilt-rate in the configuration" }
    return nil
  }

  /// The lease ends from our side.
  mutating func loseLease(_ reason: String, at now: Instant, _ effects: inout Effects) {
    letGo(reason, at: now, &effects)
    effects.append(.leaseLost(reason))
  }

  /// The car is stopped, whoever ended the lease.
  mutating func letGo(_ reason: String, at now: Instant, _ effects: inout Effects) {
    halt(.refused(code: "lease-lost", reason), at: now, &effects)
    for id in driving.release() { effects.append(.complete(id, .failure(.refused(code: "lease-lost", reason)))) }
    sayTilts(&effects)
  }

  /// The car stops now, and so many times over. What waits and would move it is off; that of a driver is told why.
  mutating func halt(_ error: CommandError, times: Int = 3, at now: Instant, _ effects: inout Effects) {
    outbox.stop(stopWords(times), at: now)
    settling.stopped()
    for id in driving.halt() { effects.append(.complete(id, .failure(error))) }
    for errand in outbox.remove(where: { $0.purpose == .proceed }) {
      if let id = errand.id { effects.append(.complete(id, .failure(error))) }
    }
    sayMotion(&effects)
    // As documented the buttons may steer.
    if options.dialect == .documented { letButtonsGo(error, &effects) }
  }

  /// What stops the car, and has it confirm that. Where Stop fails in the car's own program, another mode makes it whole.
  func stopWords(_ times: Int) -> [CarWord] {
    let stops = [CarWord](repeating: .stop, count: times)
    return (stopIsBroken(in: modes.current) ? [.stop, .chosenMode(0)] + stops.dropFirst() : stops) + [.modes]
  }

  /// When the car is asked again; what stops it goes before.
  var askTurn: Instant? { isUp && outbox.stops.isEmpty ? settling.due : nil }

  /// A car that has not answered is asked again, and told again to stop where that may not have been heard.
  mutating func askOn(at now: Instant) {
    guard let due = askTurn, now >= due else { return }
    settling.again()
    if settling.owesStop {
      outbox.stop([.stop, .modes], at: now)
    } else if !isEnding, !outbox.errands.contains(where: { $0.purpose == .greeting }) {
      outbox.ask()
    }
  }

  func stopIsBroken(in mode: Int?) -> Bool { CarModes.stopIsBroken(in: mode, options.dialect) }

  /// The link took a word that stops the car.
  mutating func stopSent(_ word: CarWord, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    outbox.stopSaid(failure, at: now)
    guard failure == nil else { return }
    switch word {
    case .chosenMode(let number): enteredMode(number, &effects)
    case .modes: settling.asked(at: now)
    default: owesStop = false
    }
  }

  // MARK: Set-points

  mutating func tilt(_ arguments: [String: Value], for id: CommandID, at now: Instant, _ effects: inout Effects) {
    guard driving.isHeld else {
      let words = "nobody holds the motion lease: take it with vehiclectl drive"
      return effects.append(.complete(id, .failure(.refused(code: "no-lease", words))))
    }
    guard let roll = arguments["roll"]?.number, let pitch = arguments["pitch"]?.number else {
      let missing = arguments["roll"]?.number == nil ? "roll" : "pitch"
      return effects.append(.complete(id, .failure(.invalid(argument: missing, "it is missing: give it in rad"))))
    }
    let attitude = CarAttitude(roll: roll, pitch: pitch, yaw: arguments["yaw"]?.number ?? 0)
    if let (name, words) = attitude.wrongArgument {
      return effects.append(.complete(id, .failure(.invalid(argument: name, words))))
    }
    driving.hold(attitude, at: now)
    switch driving.permit {
    case .none:
      let words = "the car was stopped: the lease is kept, and continue drives on"
      return effects.append(.complete(id, .success(Report(text: words))))
    case .fresh: proceed(for: nil, &effects)
    case .granting, .running: break
    }
    guard CarModes.takesTilt(in: modes.current, options.dialect) else {
      return effects.append(.complete(id, .success(Report(text: remark))))
    }
    let neutral = arguments["relative"] == .bool(true) ? .level : keeping.neutral
    let tilt = attitude.tilt(neutral: neutral, sensitivity: keeping.sensitivity)
    if let replaced = driving.aim(tilt, for: id) { effects.append(.complete(replaced, .success(Report()))) }
  }

  /// The link took a tilt, or did not: one that is not taken is trouble, for the car holds on to the one before.
  mutating func tiltSent(_ tilt: CarTilt, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    let answered = driving.takeCarried()
    for id in answered { effects.append(.complete(id, failure.map { .failure(.notConnected($0)) } ?? .success(Report()))) }
    if let failure {
      guard driving.isHeld else { return }
      settling.unsettle()
      loseLease(failure, at: now, &effects)
    } else if driving.isHeld {
      for (signal, angle) in zip(CarSignal.tilts, [tilt.roll, tilt.pitch, tilt.yaw]) {
        publish(signal, .float(Double(angle) / CarNumber.scale), &effects)
      }
    }
  }

  private mutating func sayTilts(_ effects: inout Effects) {
    for signal in CarSignal.tilts { withdraw(signal, driving.isHeld ? "not asked for" : doubt ?? "nobody drives", &effects) }
  }

  // MARK: Stop and go

  /// Lets the car drive, for a driver or for the first set-point.
  mutating func proceed(for id: CommandID?, _ effects: inout Effects) {
    guard driving.isHeld else {
      guard let id else { return }
      let words = "nobody holds the motion lease: take it with vehiclectl drive"
      return effects.append(.complete(id, .failure(.refused(code: "no-lease", words))))
    }
    if add(CarErrand(.proceed, [.proceed], for: id), &effects) { driving.grant() }
  }
}
