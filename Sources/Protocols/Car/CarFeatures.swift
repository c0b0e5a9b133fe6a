// What does not move the car: its modes, status and camera, and the settings. Routes their commands, the car's messages and time to
// them, and returns the messages to queue.

struct CarFeatures: Sendable {
  private let options: CarOptions
  private(set) var modes: CarModes
  private var modeQuery: CarModeQuery
  private(set) var status: CarStatus
  private(set) var camera: CarCamera
  private(set) var settings: CarSettings
  private var connectionTest = CarConnectionTest()

  init(_ options: CarOptions) {
    self.options = options
    modes = CarModes(options.dialect)
    modeQuery = CarModeQuery(options.dialect)
    status = CarStatus(options)
    camera = CarCamera(options)
    settings = CarSettings(options)
  }

  // MARK: Session

  mutating func start(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    camera.start(&effects)
    settings.restore(stored, &effects)
  }

  mutating func linkUp(_ effects: inout Effects) {
    modes = CarModes(options.dialect)
    modeQuery = CarModeQuery(options.dialect)
    withdraw("the car has not responded yet", &effects)
    effects.withdraw(.modes, "the car has not reported its modes yet")
    status.linkUp(&effects)
  }

  /// The car has sent its first message over this link: it has just started its program.
  mutating func begin(at now: Instant, _ effects: inout Effects) {
    modes.publish(&effects)
    camera.begin(&effects)
    if options.dialect == .asBuilt {
      effects.publish(.speechEnabled, .bool(false))
    } else {
      effects.withdraw(.speechEnabled, "not reported")
    }
    status.begin(at: now)
  }

  /// The car has sent another message.
  mutating func responded(_ effects: inout Effects) { status.responded(&effects) }

  /// Until the car has responded its state is unknown: it may serve another client.
  func withdraw(_ reason: String, _ effects: inout Effects) {
    modes.withdraw(reason, &effects)
    camera.withdraw(reason, &effects)
    effects.withdraw(.speechEnabled, reason)
  }

  /// The link is lost, or is closed: fails all waiting commands.
  mutating func fail(_ error: CommandError, _ effects: inout Effects) {
    status.fail(error, &effects)
    modeQuery.fail(error, &effects)
    camera.fail(error, &effects)
    connectionTest = CarConnectionTest()
  }

  // MARK: Commands

  /// Changes a setting; false if the property is not one.
  mutating func setSetting(
    _ signal: CarSignal, _ value: Value, for id: CommandID, isDriven: Bool, _ effects: inout Effects
  ) -> Bool {
    settings.set(signal, value, for: id, isDriven: isDriven, &effects)
  }

  mutating func setNeutral(_ position: Value?, _ driving: CarDriving, for id: CommandID, _ effects: inout Effects) {
    settings.setNeutral(position, attitude: driving.attitude, for: id, isDriven: driving.isRunning, &effects)
  }

  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) { settings.stored(key, failure, &effects) }

  /// Sets a property: returns the message to queue.
  mutating func set(
    _ signal: CarSignal, _ value: Value, for id: CommandID, isDriven: Bool, hasRoom: Bool, at now: Instant, _ effects: inout Effects
  ) -> CarQueuedCommand? {
    switch (signal, value) {
    case (.video, .bool(false)): return CarQueuedCommand(.video(false), [.videoStream(false)], for: id)
    case (.video, .bool(true)):
      if let reply = camera.reply(isDriven: isDriven) {
        effects.append(.complete(id, reply))
      } else if !hasRoom {
        CarSender.rejectFull(id, &effects)
      } else {
        camera.begin(for: id, at: now, &effects)
        return CarQueuedCommand(.video(true), [.videoQuality(settings.quality), .videoStream(true)])
      }
    default: effects.fail(command: id, .invalid(argument: "value", "\(value.text) is not a valid value"))
    }
    return nil
  }

  /// Runs an action: returns the message to queue.
  mutating func run(
    _ action: CarAction, _ arguments: [String: Value], for id: CommandID, isDriven: Bool, _ effects: inout Effects
  ) -> CarQueuedCommand? {
    switch action {
    case .modeInfo: modeQuery.ask(arguments["mode"], modes, for: id, &effects)
    case .refresh:
      if isDriven {
        effects.fail(command: id, CarStatus.notWhileDriven)
      } else if !status.join(id) {
        return CarQueuedCommand(.status, [.status], for: id)
      }
    case .sendMessage:
      switch CarText.outbound(arguments["text"], isAllowed: options.allowsMessages) {
      case .failure(let error): effects.fail(command: id, error)
      case .success(let text): return CarQueuedCommand(.message, [.message(text)], for: id)
      }
    case .tilt, .proceed, .stop, .shutDown, .neutral: break
    }
    return nil
  }

  mutating func forget(_ id: CommandID) {
    status.forget(id)
    modeQuery.forget(id)
    camera.forget(id)
    settings.forget(id)
  }

  // MARK: Time

  func nextWake(_ queue: CarSendQueue, isDriven: Bool) -> Instant? {
    [statusDue(queue, isDriven: isDriven), status.deadline, modeQuery.deadline, camera.nextWake, connectionTestDue(queue)].compactMap(
      \.self
    ).min()
  }

  /// Returns whether the camera has not started, and the car may have ignored what was sent to it.
  mutating func expire(at now: Instant, _ effects: inout Effects) -> Bool {
    if status.isOverdue(at: now) { status.expire(&effects) }
    modeQuery.expire(at: now, &effects)
    return camera.expire(at: now, &effects)
  }

  /// The next message that is due; nil: none.
  mutating func takeDue(_ queue: CarSendQueue, isDriven: Bool, at now: Instant) -> CarQueuedCommand? {
    if let due = statusDue(queue, isDriven: isDriven), now >= due { return CarQueuedCommand(.status, [.status]) }
    guard let due = connectionTestDue(queue), now >= due else { return nil }
    connectionTest.queued(at: now)
    return CarQueuedCommand(.connectionTest, [.connectionTest])
  }

  /// The next request for the description of a mode; nil: none. Completes the commands whose descriptions are known.
  mutating func takeModeInfo(_ queue: CarSendQueue, _ effects: inout Effects) -> CarQueuedCommand? {
    guard let mode = modeQuery.advance(modes, &effects), !queue.containsModeInfo else { return nil }
    return CarQueuedCommand(.modeInfo(mode), [.infoModes(mode)])
  }

  /// When the status is requested; nil: not now, because the car is driven, the camera starts, or something else is first.
  private func statusDue(_ queue: CarSendQueue, isDriven: Bool) -> Instant? {
    !isDriven && camera.isQuiet && queue.commands.isEmpty ? status.due : nil
  }

  /// When the next keep-alive is due; nil: none, or one is queued already.
  private func connectionTestDue(_ queue: CarSendQueue) -> Instant? {
    queue.hasRoom && !queue.contains(.connectionTest) ? connectionTest.due : nil
  }

  // MARK: Messages

  mutating func connectionTestRequested(_ seconds: Double?, at now: Instant) { connectionTest.requested(seconds: seconds, at: now) }

  /// The description of a mode: returns whether it was expected.
  mutating func received(modeInfo body: [UInt8], _ effects: inout Effects) -> Bool { modeQuery.received(body, modes, &effects) }

  /// The car's list of modes; nil: none in this read.
  mutating func received(modes body: [UInt8]?, _ effects: inout Effects) {
    guard let body else { return }
    if modes.received(body, &effects) { modeQuery.listChanged() }
    camera.responded()
  }

  mutating func received(status body: [UInt8]?, _ effects: inout Effects) {
    if let body { status.received(body, &effects) }
  }

  /// The link has accepted a message of these components, or failed.
  mutating func sent(_ action: CarMotion.Action, at now: Instant, _ effects: inout Effects) {
    switch action {
    case .nothing, .shutDown, .disconnected: break
    case .modeEntered(let number): modes.entered(number, &effects)
    case .modeInfoRequested(let number): modeQuery.requested(number, at: now)
    case .modeInfoFailed(let error): modeQuery.fail(error, &effects)
    case .statusRequested(let id): status.requested(for: id, at: now)
    case .videoSwitched(let isOn, let id): camera.switched(isOn, for: id, &effects)
    case .videoFailed(let error): camera.fail(error, &effects)
    }
  }

  /// VideoStream On is sent.
  mutating func videoRequested(at now: Instant, _ effects: inout Effects) { camera.requested(at: now, &effects) }

  /// The link to the camera's server: returns the request to send to it, if any.
  mutating func cameraLinkChanged(_ change: LinkState, at now: Instant, _ effects: inout Effects) -> [UInt8]? {
    camera.linkChanged(change, at: now, &effects)
  }

  mutating func received(picture bytes: [UInt8], _ effects: inout Effects) -> CarCamera.Answer { camera.received(bytes, &effects) }
  mutating func retryCamera(at now: Instant, _ effects: inout Effects) { camera.retry(at: now, &effects) }

  mutating func publishEarly(_ effects: inout Effects) { status.publishEarly(&effects) }
}
