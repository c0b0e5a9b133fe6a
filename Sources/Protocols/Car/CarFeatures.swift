// The features that do not move the car: modes, status, camera and settings. Routes commands, the car's messages and timers to these
// components, and returns the messages to queue.

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
    modes = CarModes(options.dialect, device: options.device)
    modeQuery = CarModeQuery(options.dialect)
    status = CarStatus(options)
    camera = CarCamera(options)
    settings = CarSettings(options)
  }

  // MARK: Session

  mutating func restore(_ stored: [String: [UInt8]], _ effects: inout Effects) {
    camera.publishURL(&effects)
    settings.restore(stored, &effects)
  }

  mutating func linkUp(_ effects: inout Effects) {
    modes = CarModes(options.dialect, device: options.device)
    modeQuery = CarModeQuery(options.dialect)
    withdraw("the car has not responded yet", &effects)
    effects.withdraw(.modes, "the car has not reported its modes yet")
    status.linkUp(&effects)
  }

  /// Publishes the initial state after the car's first message over this link. This state is known, because the car restarts its program
  /// for each client.
  mutating func sessionBegan(at now: Instant, _ effects: inout Effects) {
    modes.publish(&effects)
    camera.publishInitialState(&effects)
    if options.dialect == .asBuilt {
      effects.publish(.speechEnabled, .bool(false))
    } else {
      effects.withdraw(.speechEnabled, "not reported")
    }
    status.sessionBegan(at: now)
  }

  /// Handles any later message of the car, which shows that it still responds.
  mutating func carResponded(_ effects: inout Effects) { status.carResponded(&effects) }

  /// Withdraws the car's state, which is unknown while the car does not respond: another client may control the car.
  func withdraw(_ reason: String, _ effects: inout Effects) {
    modes.withdraw(reason, &effects)
    camera.withdraw(reason, &effects)
    effects.withdraw(.speechEnabled, reason)
  }

  /// Fails all waiting commands, because the link is lost or closed.
  mutating func failCommands(_ error: CommandError, _ effects: inout Effects) {
    status.failCommands(error, &effects)
    modeQuery.failCommands(error, &effects)
    camera.failStart(error, &effects)
    connectionTest = CarConnectionTest()
  }

  /// Why driving is not possible now, or nil if it is.
  var drivingRefusal: String? { status.isUnanswered ? CarMotion.lostMessage : camera.drivingRefusal }

  // MARK: Commands

  /// Changes a setting; returns false if the property is not a setting.
  mutating func setSetting(
    _ property: CarProperty, _ value: Value, for id: CommandID, isDriven: Bool, _ effects: inout Effects
  ) -> Bool {
    settings.set(property, value, for: id, isDriven: isDriven, &effects)
  }

  mutating func setNeutral(_ position: Value?, _ driving: CarDriving, for id: CommandID, _ effects: inout Effects) {
    settings.setNeutral(position, attitude: driving.attitude, for: id, isDriven: driving.isRunning, &effects)
  }

  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) { settings.stored(key, failure, &effects) }

  /// Sets a property that is not a setting; returns the message to queue, or nil if the command is complete or waits.
  mutating func set(
    _ property: CarProperty, _ value: Value, for id: CommandID, isDriven: Bool, hasRoom: Bool, at now: Instant, _ effects: inout Effects
  ) -> CarQueuedCommand? {
    switch (property, value) {
    case (.video, .bool(false)): return CarQueuedCommand(.video(false), [.videoStream(false)], for: id)
    case (.video, .bool(true)):
      if status.isUnanswered {
        effects.fail(command: id, .notConnected(CarMotion.lostMessage))
      } else if let reply = camera.reply(isDriven: isDriven) {
        effects.append(.complete(id, reply))
      } else if !hasRoom {
        CarSender.rejectFull(id, &effects)
      } else {
        camera.beginStart(for: id, at: now, &effects)
        return CarQueuedCommand(.video(true), [.videoQuality(settings.quality), .videoStream(true)])
      }
    default: effects.fail(command: id, .invalid(argument: "value", "\(value.text) is not a valid value"))
    }
    return nil
  }

  /// Runs an action; returns the message to queue, or nil if the command is complete or waits.
  mutating func run(
    _ action: CarAction, _ arguments: [String: Value], for id: CommandID, isDriven: Bool, _ effects: inout Effects
  ) -> CarQueuedCommand? {
    switch action {
    case .modeInfo: modeQuery.add(arguments["mode"], modes, for: id, &effects)
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

  mutating func cancel(_ id: CommandID) {
    status.cancel(id)
    modeQuery.cancel(id)
    camera.cancel(id)
    settings.cancel(id)
  }

  // MARK: Time

  func nextWake(_ queue: CarSendQueue, isDriven: Bool) -> Instant? {
    [
      statusDue(queue, isDriven: isDriven), status.deadline, modeQuery.deadline, camera.nextWake, cameraModesDue(queue),
      connectionTestDue(queue),
    ]
    .compactMap(\.self).min()
  }

  /// Handles timeouts. Returns true if the camera's start timed out: the car may have ignored the commands sent since.
  mutating func expire(at now: Instant, _ effects: inout Effects) -> Bool {
    if status.isOverdue(at: now) { status.expire(&effects) }
    modeQuery.expire(at: now, &effects)
    return camera.expire(at: now, &effects)
  }

  /// Returns a request or keep-alive that is due, or nil.
  mutating func makeDueRequest(_ queue: CarSendQueue, isDriven: Bool, at now: Instant) -> CarQueuedCommand? {
    if let due = statusDue(queue, isDriven: isDriven), now >= due { return CarQueuedCommand(.status, [.status]) }
    if let due = cameraModesDue(queue), now >= due {
      camera.modesRequested(at: now)
      return CarQueuedCommand(.greeting, [.modes])
    }
    guard let due = connectionTestDue(queue), now >= due else { return nil }
    connectionTest.messageQueued(at: now)
    return CarQueuedCommand(.connectionTest, [.connectionTest])
  }

  /// Completes the commands whose descriptions are known, and returns the next request for a description of a mode, or nil.
  mutating func makeModeInfoRequest(_ queue: CarSendQueue, _ effects: inout Effects) -> CarQueuedCommand? {
    guard let mode = modeQuery.advance(modes, &effects), !queue.containsModeInfo else { return nil }
    return CarQueuedCommand(.modeInfo(mode), [.infoModes(mode)])
  }

  /// When the next status request is due; nil while the car is driven, the camera starts, or other commands are queued.
  private func statusDue(_ queue: CarSendQueue, isDriven: Bool) -> Instant? {
    !isDriven && camera.isQuiet && queue.commands.isEmpty ? status.due : nil
  }

  /// When the modes must be requested because no picture has arrived; nil if other commands are queued.
  private func cameraModesDue(_ queue: CarSendQueue) -> Instant? { queue.commands.isEmpty ? camera.modesDue : nil }

  /// When the next keep-alive is due; nil if the car has not requested keep-alives, one is queued, or the queue is full.
  private func connectionTestDue(_ queue: CarSendQueue) -> Instant? {
    queue.hasRoom && !queue.contains(.connectionTest) ? connectionTest.due : nil
  }

  // MARK: Messages

  /// Handles one message, if it concerns these features; returns false if it describes a mode and no description was requested.
  mutating func received(_ report: CarReport, at now: Instant, _ effects: inout Effects) -> Bool {
    switch report {
    case .modeInfo(let body): return modeQuery.received(body, modes, &effects)
    case .connectionTest(let seconds): connectionTest.setInterval(seconds: seconds, at: now)
    case .tiltInterval, .tiltStopped, .buttons, .other: break
    }
    return true
  }

  /// Handles the car's list of modes. `body` is nil if the last read contained no list.
  mutating func received(modes body: [UInt8]?, at now: Instant, _ effects: inout Effects) {
    guard let body else { return }
    if modes.received(body, &effects) { modeQuery.listChanged() }
    camera.modesReceived(at: now, &effects)
  }

  mutating func received(status body: [UInt8]?, _ effects: inout Effects) {
    if let body { status.received(body, &effects) }
  }

  /// Handles the end of a write, if one of these components queued the message.
  mutating func sent(_ result: CarMotion.WriteResult, at now: Instant, _ effects: inout Effects) {
    switch result {
    case .nothing, .shutDown, .disconnected: break
    case .modeEntered(let number): modes.setCurrent(number, &effects)
    case .modeInfoRequested(let number): modeQuery.requestSent(number, at: now)
    case .modeInfoFailed(let error): modeQuery.failCommands(error, &effects)
    case .statusRequested(let id): status.requestSent(for: id, at: now)
    case .videoSwitched(let isOn, let id): camera.videoSwitched(isOn, for: id, &effects)
    case .videoFailed(let error): camera.failStart(error, &effects)
    }
  }

  /// Starts to fetch the first picture, because VideoStream On was passed to the link.
  mutating func videoRequested(at now: Instant, _ effects: inout Effects) { camera.videoRequested(at: now, &effects) }

  /// Handles a state change of the link to the camera's server; returns the HTTP request to send over it, if any.
  mutating func cameraLinkChanged(_ change: LinkState, at now: Instant, _ effects: inout Effects) -> [UInt8]? {
    camera.linkChanged(change, at: now, &effects)
  }

  /// Handles data from the camera's server. If it is not a picture, returns the reason as a message; the caller then calls `retryCamera`.
  mutating func received(picture bytes: [UInt8], at now: Instant, _ effects: inout Effects) -> String? {
    camera.received(bytes, at: now, &effects)
  }
  mutating func retryCamera(at now: Instant, _ effects: inout Effects) { camera.retry(at: now, &effects) }
}
