// Link handling, and the start and end of a session. The car must always get Stop and Disconnect if possible: otherwise it drives on,
// and accepts no other client until its program is restarted.

extension CarMachine {
  /// The kernel would detect it only after a long time.
  static let lost = "the car no longer responds: check that it is in range and switched on"

  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    if session.isUp { linkWentDown("the link was reopened", at: now, &effects) }
    modes = CarModes(options.dialect)
    modeQuery = CarModeQuery(options.dialect)
    // As built it sends its modes twice to a new client.
    confirmation = CarStopConfirmation(unasked: options.dialect == .asBuilt ? 2 : 0)
    session.linkUp(at: now, &effects)
    // A confirmed stop is no longer valid: another client may have driven the car since.
    if standstill == .confirmed { standstill = .unknown }
    publishInitialState(&effects)
    liveness = CarLivenessCheck()
    if owesStop || standstill == .driven { queue.stop([.stop], at: now) }
    _ = queue.add(CarQueuedCommand(.greeting, [.modes]))
    if options.dialect == .asBuilt { _ = queue.add(CarQueuedCommand(.greeting, [.mainViewEntered])) }
  }

  /// The car responds: it is stopped, whatever it did before.
  mutating func carResponded(at now: Instant, _ effects: inout Effects) {
    if session.isReady {
      return status.responded(&effects)
    }
    guard session.responded(&effects) else { return }
    publishStartState(&effects)
    publishMotion(&effects)
    status.begin(at: now)
    queue.stop(stopWords(1), at: now)
    confirmation.stopped()
  }

  mutating func fellSilent(_ effects: inout Effects) {
    if standstill != .driven { standstill = .silent }
    withdrawState(CarSession.silence, &effects)
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if session.isEnding { return finish(&effects) }
    drop(reason, at: now, &effects)
  }

  /// The link cannot be used any more.
  mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    drop(reason, at: now, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func drop(_ reason: String, at now: Instant, _ effects: inout Effects) {
    guard session.isUp else {
      session.linkDown(reason)
      return publishMotion(&effects)
    }
    if driving.isHeld { loseLease(reason, at: now, &effects) }
    // Stop messages that could not be sent are the first ones on the next link.
    owesStop = owesStop || !queue.stops.isEmpty
    failEverything(.notConnected(reason), &effects)
    session.linkDown(reason)
    publishMotion(&effects)
  }

  /// Fails all waiting commands.
  private mutating func failEverything(_ error: CommandError, _ effects: inout Effects) {
    for queued in queue.reset() { if let id = queued.id { effects.append(.complete(id, .failure(error))) } }
    for waiter in stopping { effects.append(.complete(waiter.id, .failure(unconfirmed(error)))) }
    stopping = []
    status.fail(error, &effects)
    modeQuery.fail(error, &effects)
    camera.fail(error, &effects)
    test = CarConnectionTest()
    reader.reset()
    driving.forgetCar()
    buttons = CarButtons()
    (sending, willVariant) = (nil, nil)
  }

  // MARK: Shutdown

  /// The daemon stops, or a client disconnects the device: Stop, Stop, Disconnect.
  mutating func end(at now: Instant, _ effects: inout Effects) {
    let reason = "the link is being closed"
    guard session.isUp else { return effects.append(.stopped) }
    if session.isEnding { return }
    if driving.isHeld { loseLease(reason, at: now, &effects) }
    // A write in flight is still awaited.
    let outstanding = sending
    failEverything(.notConnected(reason), &effects)
    sending = outstanding
    halt(.notConnected(reason), times: 2, at: now, &effects)
    session.end(at: now)
  }

  /// Nothing more can or must be sent: the car expects the link to be closed at once.
  mutating func finish(_ effects: inout Effects) {
    failEverything(.notConnected("the link is being closed"), &effects)
    owesStop = false
    session.linkDown("the link is being closed")
    publishMotion(&effects)
    effects.append(.stopped)
  }

  // MARK: Published values

  /// Publishes the initial state of a new link.
  private mutating func publishInitialState(_ effects: inout Effects) {
    withdrawState("the car has not responded yet", &effects)
    withdraw(.modes, "the car has not reported its modes yet", &effects)
    publishTiltRate(&effects)
    status.linkUp(&effects)
  }

  /// Until the car has responded its state is unknown: it may serve another client.
  private mutating func withdrawState(_ reason: String, _ effects: inout Effects) {
    publishMotion(&effects)
    for signal in [CarSignal.mode, .modeNumber, .leftButton, .rightButton, .buttonsEnabled, .speechEnabled, .video] {
      withdraw(signal, reason, &effects)
    }
  }

  /// A car that responds has just started its program.
  private mutating func publishStartState(_ effects: inout Effects) {
    modes.publish(&effects)
    for side in CarSide.allCases { publish(side.signal, .bool(false), &effects) }
    for signal in [CarSignal.buttonsEnabled, .speechEnabled, .video] {
      if options.dialect == .asBuilt { publish(signal, .bool(false), &effects) } else { withdraw(signal, "not reported", &effects) }
    }
  }

  /// The error if a Stop was not confirmed.
  private func unconfirmed(_ error: CommandError) -> CommandError {
    if case .notConnected(let reason) = error { .notConnected("\(Self.unconfirmed); \(reason)") } else { error }
  }

  /// Publishes changes of the state and the fault.
  mutating func report(_ effects: inout Effects) {
    let (word, fault): (String, String?) =
      switch session.state {
      case .down: ("waiting", leftMoving)
      case .greeting: ("greeting", leftMoving)
      case .silent: ("silent", CarSession.silence)
      case .ending: ("stopping", nil)
      case .ready where trouble != nil && standstill != .confirmed: ("unconfirmed", trouble)
      case .ready where status.isUnanswered: ("silent", Self.lost)
      case .ready:
        camera.isStarting
          ? ("starting-camera", nil) : (driving.isHeld ? "driving" : "ready", camera.fault ?? trouble.map { _ in Self.lost })
      }
    condition.publish(word, fault: fault, &effects)
  }
}
