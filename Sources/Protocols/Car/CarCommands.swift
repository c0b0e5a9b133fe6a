// The commands of the car. Each ends in exactly one `complete`, unless its caller has disconnected. Commands for the car are rejected
// while it does not respond; settings of the daemon are not.

extension CarMachine {
  mutating func perform(_ id: CommandID, _ command: Command, at now: Instant, _ effects: inout Effects) {
    func fail(_ error: CommandError) { effects.append(.complete(id, .failure(error))) }
    switch command {
    case .set(let property, let value):
      guard let signal = CarSignal(rawValue: property), schema.properties[property].access == .write else {
        return fail(.refused(code: "read-only", "the property is read-only"))
      }
      if settings.set(signal, value, for: id, isDriven: driving.isRunning, &effects) { return }
      if let reason = session.unavailability { return fail(.notConnected(reason)) }
      set(signal, value, for: id, at: now, &effects)
    case .run(let action, let arguments):
      guard let action = CarAction(rawValue: action) else { return fail(.refused(code: "no-action", "no such action")) }
      if action == .neutral {
        return settings.setNeutral(
          arguments["position"], attitude: driving.attitude, for: id, isDriven: driving.isRunning, &effects)
      }
      // Stop is sent even if the car has not responded yet.
      if action == .stop, session.isUp, !session.isEnding { return stop(for: id, at: now, &effects) }
      if let reason = session.unavailability {
        return fail(.notConnected(action == .stop && standstill != .confirmed ? "\(Self.unconfirmed); \(reason)" : reason))
      }
      run(action, arguments, for: id, at: now, &effects)
    }
  }

  private mutating func set(_ signal: CarSignal, _ value: Value, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    switch (signal, value) {
    case (.mode, .string(let name)): choose(name, for: id, at: now, &effects)
    case (.leftButton, .bool(let isDown)): press(.left, isDown, for: id, &effects)
    case (.rightButton, .bool(let isDown)): press(.right, isDown, for: id, &effects)
    case (.video, .bool(let isOn)): switchVideo(isOn, for: id, at: now, &effects)
    default: effects.append(.complete(id, .failure(.invalid(argument: "value", "\(value.text) is not a valid value"))))
    }
  }

  private mutating func run(
    _ action: CarAction, _ arguments: [String: Value], for id: CommandID, at now: Instant, _ effects: inout Effects
  ) {
    switch action {
    case .tilt: tilt(arguments, for: id, at: now, &effects)
    case .proceed: proceed(for: id, &effects)
    case .modeInfo: modeQuery.ask(arguments["mode"], modes, for: id, &effects)
    case .refresh: refresh(for: id, &effects)
    case .sendMessage: send(arguments["text"], for: id, &effects)
    case .shutDown: shutDown(for: id, at: now, &effects)
    case .stop, .neutral: break
    }
  }

  /// Queues a command, or rejects it if the queue is full.
  mutating func add(_ queued: CarQueuedCommand, _ effects: inout Effects) -> Bool {
    if queue.add(queued) { return true }
    if let id = queued.id { refuseToWait(id, &effects) }
    return false
  }

  private func refuseToWait(_ id: CommandID, _ effects: inout Effects) {
    effects.append(.complete(id, .failure(.refused(code: "busy", "too many queued commands: try again later"))))
  }

  /// The caller has disconnected: the command is finished without a reply.
  mutating func forget(_ id: CommandID) {
    driving.forget(id)
    queue.forget(id)
    stopping.removeAll { $0.id == id }
    status.forget(id)
    modeQuery.forget(id)
    camera.forget(id)
    settings.forget(id)
  }

  /// The link has accepted a message of a queued command, or failed.
  mutating func commandSent(_ word: CarOutboundMessage, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    if let failure {
      if let queued = queue.commandFailed() { failed(queued, .notConnected(failure), at: now, &effects) }
      return
    }
    guard let queued = queue.commandAccepted() else { return }
    switch queued.purpose {
    case .greeting: if word == .modes { confirmation.asked(at: now) }
    case .liveness:
      confirmation.asked(at: now)
      liveness.ask(at: now)
    case .message, .connectionTest: break
    case .proceed:
      if !CarModes.takesTilt(in: modes.current, options.dialect) { askAgain() }
      driving.run()
      liveness.begin(at: now)
      publishMotion(&effects)
    case .mode(let number): enteredMode(number, &effects)
    case .button(let side, let isDown): pressed(side, isDown, &effects)
    case .status: return status.requested(for: queued.id, at: now)
    case .modeInfo(let number): return modeQuery.requested(number, at: now)
    case .video(let isOn): return camera.switched(isOn, for: queued.id, &effects)
    case .shutDown:
      if let id = queued.id { effects.append(.complete(id, .success(Report(text: "shutdown command sent")))) }
      return giveUp("shutdown command sent", at: now, &effects)
    }
    if let id = queued.id { effects.append(.complete(id, .success(Report()))) }
  }

  private mutating func failed(_ queued: CarQueuedCommand, _ error: CommandError, at now: Instant, _ effects: inout Effects) {
    if let id = queued.id { effects.append(.complete(id, .failure(error))) }
    switch queued.purpose {
    case .modeInfo: modeQuery.fail(error, &effects)
    case .video(true): camera.fail(error, &effects)
    // A driver's set-points are based on the state that the car reports.
    case .proceed: if case .notConnected(let reason) = error, driving.isHeld { loseLease(reason, at: now, &effects) }
    default: break
    }
  }

  // MARK: Modes

  /// Changes the mode. The car must stop first, because a mode change does not stop it, and continues only after Continue.
  private mutating func choose(_ name: String, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    switch modes.find(name) {
    case .failure(let error): effects.append(.complete(id, .failure(error)))
    case .success(let number):
      guard queue.hasRoom else { return refuseToWait(id, &effects) }
      halt(.refused(code: "stopped", "the mode was changed: use continue to drive on"), times: 2, at: now, &effects)
      // Pressed buttons belong to the old mode.
      let releases = sidesToRelease.map { CarOutboundMessage.button($0, isDown: false) }
      _ = queue.add(CarQueuedCommand(.mode(number), releases + [.chosenMode(number)], for: id))
    }
  }

  mutating func enteredMode(_ number: Int, _ effects: inout Effects) {
    // In these modes the car ignores commands while its camera starts.
    if options.dialect == .asBuilt, number >= 5 { askAgain() }
    for side in buttons.pressed { pressed(side, false, &effects) }
    modes.entered(number, &effects)
  }

  /// Requests the list of modes: its response confirms all earlier messages.
  private mutating func askAgain() {
    confirmation.expectLoss()
    queue.ask()
  }

  // MARK: The rest

  private mutating func send(_ text: Value?, for id: CommandID, _ effects: inout Effects) {
    guard options.allowsMessages else {
      let message =
        "messages are disabled: set allow-messages = true if the car supports them; the car as built does not"
      return effects.append(.complete(id, .failure(.refused(code: "not-allowed", message))))
    }
    guard case .string(let text)? = text else {
      return effects.append(.complete(id, .failure(.invalid(argument: "text", "is missing"))))
    }
    if let message = CarText.refusal(text) { return effects.append(.complete(id, .failure(.invalid(argument: "text", message)))) }
    _ = add(CarQueuedCommand(.message, [.message(text)], for: id), &effects)
  }

  private mutating func shutDown(for id: CommandID, at now: Instant, _ effects: inout Effects) {
    guard add(CarQueuedCommand(.shutDown, [.shutDown, .disconnect], for: id), &effects) else { return }
    if driving.isHeld { loseLease("the car is being shut down", at: now, &effects) }
    halt(.refused(code: "stopped", "the car is being shut down"), times: 2, at: now, &effects)
  }
}
