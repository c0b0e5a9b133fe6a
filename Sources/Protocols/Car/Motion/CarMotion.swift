// The motion of the car: the lease, Stop and Continue, the driver's tilts, and whether the car still responds. The end of a lease, for any
// reason, stops the car immediately. The car never starts without a lease, and never restarts by itself after a stop.
// CarMotionSchedule.swift decides what is sent next.
// Source: AutoTT, TCP.py, Modes.py and Steering.py.

struct CarMotion: Sendable {
  /// The consequence of a write for the other components.
  enum WriteResult {
    case nothing
    case modeEntered(Int)
    case modeInfoRequested(Int)
    case modeInfoFailed(CommandError)
    case statusRequested(CommandID?)
    case videoSwitched(Bool, CommandID?)
    case videoFailed(CommandError)
    /// The action `shut-down` has sent ShutDown and Disconnect.
    case shutDown
    /// The shutdown sequence of the session has sent Disconnect.
    case disconnected
  }

  static let lostMessage = "the car no longer responds: check that it is in range and switched on"
  static let leaseRequired = "motion lease required: run \"vehiclectl drive\""

  let dialect: CarDialect
  private(set) var sender: CarSender
  private(set) var driving: CarDriving
  private(set) var standstill = CarStandstill()
  private(set) var liveness = CarLivenessCheck()
  private(set) var buttons: CarButtons
  private var lastWill: CarLastWill

  init(_ options: CarOptions) {
    dialect = options.dialect
    sender = CarSender(options.dialect)
    driving = CarDriving(configuredInterval: options.tiltInterval)
    buttons = CarButtons(options.dialect)
    lastWill = CarLastWill(options.dialect)
  }

  // MARK: Session

  mutating func restore(_ stored: [String: [UInt8]], _ context: CarContext, _ effects: inout Effects) {
    standstill.restore(stored)
    publish(context, &effects)
  }

  mutating func linkUp(_ context: CarContext, at now: Instant, _ effects: inout Effects) {
    standstill.linkUp()
    liveness = CarLivenessCheck()
    sender.linkUp(needsStop: standstill.needsStop, at: now)
    withdraw("the car has not responded yet", context, &effects)
    driving.publishRate(&effects)
  }

  /// Stops the car after its first message over this link, because it may still be driving.
  mutating func sessionBegan(_ context: CarContext, at now: Instant, _ effects: inout Effects) {
    buttons.publishInitialState(&effects)
    publish(context, &effects)
    sender.stop(stopMessages(1, context), at: now)
  }

  /// Handles a car that has not sent its first message over this link in time.
  mutating func carDidNotRespond(_ context: CarContext, _ effects: inout Effects) {
    standstill.carDidNotRespond()
    withdraw(CarSession.silentMessage, context, &effects)
  }

  mutating func linkDown(_ reason: String, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    if driving.isLeaseHeld { revokeLease(reason, context, at: now, &effects) }
    if context.session.isClosing {
      standstill.shutdownEnded()
    } else {
      standstill.linkLost(hasStops: !sender.queue.stops.isEmpty)
    }
    reset(.notConnected(reason), &effects)
    sender.linkDown()
  }

  /// Ends the lease and fails the queued commands, because the shutdown sequence begins.
  mutating func prepareShutdown(_ reason: String, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    if driving.isLeaseHeld { revokeLease(reason, context, at: now, &effects) }
    reset(.notConnected(reason), &effects)
  }

  /// Fails all waiting commands.
  private mutating func reset(_ error: CommandError, _ effects: inout Effects) {
    sender.reset(error, &effects)
    standstill.failCommands(error, &effects)
    driving.reset()
    buttons = CarButtons(dialect)
    lastWill.reset()
  }

  // MARK: Lease

  /// Begins a lease, or revokes it immediately. `refusal`: why other components do not allow driving now, or nil if they allow it.
  mutating func beginLease(_ deadline: Nanoseconds, refusal: String?, at now: Instant, _ effects: inout Effects) {
    if let reason = refusal ?? drivingRefusal { return effects.append(.leaseLost(reason)) }
    driving.beginLease(deadline: deadline, at: now)
    for property in CarProperty.tilts { effects.withdraw(property, "no setpoint") }
  }

  /// Revokes the lease, and stops the car.
  mutating func revokeLease(_ reason: String, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    endLease(reason, context, at: now, &effects)
    effects.append(.leaseLost(reason))
  }

  /// Stops the car after the lease has ended for any reason.
  mutating func endLease(_ reason: String, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    let error = CommandError.refused(code: .leaseLost, reason)
    stopCar(error, context, at: now, &effects)
    for id in driving.endLease() { effects.fail(command: id, error) }
    withdrawTilts(context, &effects)
  }

  /// Stops the car: sends Stop immediately, `times` times. Queued motion commands fail with this error.
  mutating func stopCar(_ error: CommandError, times: Int = 3, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    sender.stop(stopMessages(times, context), at: now)
    for id in driving.revokePermit() { effects.fail(command: id, error) }
    sender.remove(error, &effects) { $0 == .proceed }
    publish(context, &effects)
    // In the documented dialect the buttons may steer.
    guard dialect == .documented else { return }
    let sides = sidesToRelease
    sender.remove(error, &effects) { if case .button = $0 { true } else { false } }
    for side in sides { sender.addAlways(CarQueuedCommand(.button(side, false), [.button(side, isDown: false)])) }
  }

  // MARK: Commands

  /// Queues a command, or rejects it if the queue is full.
  mutating func add(_ queued: CarQueuedCommand, _ effects: inout Effects) { _ = sender.add(queued, &effects) }

  /// Queues a message, or drops it if the queue is full.
  mutating func addIfPossible(_ queued: CarQueuedCommand) { sender.addIfPossible(queued) }

  /// Handles a setpoint of the driver; the first one of a lease sends Continue.
  mutating func tilt(
    _ arguments: [String: Value], _ settings: CarSettings, for id: CommandID, _ context: CarContext, at now: Instant,
    _ effects: inout Effects
  ) {
    guard driving.isLeaseHeld else { return effects.refuse(command: id, code: .noLease, Self.leaseRequired) }
    let attitude: PhoneAttitude
    switch PhoneAttitude.parse(arguments) {
    case .failure(let error): return effects.fail(command: id, error)
    case .success(let value): attitude = value
    }
    driving.setAttitude(attitude, at: now)
    switch driving.permit {
    case .stopped:
      let message = "the car was stopped, but the lease is still held: use continue to drive again"
      return effects.succeed(command: id, Report(text: message))
    case .ready: proceed(for: nil, &effects)
    case .starting, .running: break
    }
    guard CarModes.usesTilt(in: context.mode, dialect) else { return effects.succeed(command: id, Report(text: remark)) }
    let neutral = arguments["relative"] == .bool(true) ? .level : settings.neutral
    let tilt = attitude.tilt(neutral: neutral, sensitivity: settings.sensitivity)
    effects.succeed(command: driving.set(tilt, for: id))
  }

  /// Queues Continue, for the action `continue`, or for the first setpoint of a lease (`id` is nil).
  mutating func proceed(for id: CommandID?, _ effects: inout Effects) {
    guard driving.isLeaseHeld else { return effects.refuse(command: id, code: .noLease, Self.leaseRequired) }
    if sender.add(CarQueuedCommand(.proceed, [.proceed], for: id), &effects) { driving.continueQueued() }
  }

  /// Stops the car for any client that may control it. The command completes when the car confirms Stop.
  mutating func stop(for id: CommandID, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    stopCar(.refused(code: .stopped, "the car was stopped: use continue to drive again"), context, at: now, &effects)
    if !standstill.wait(for: id, at: now) { effects.refuse(command: id, code: .busy, "the car is already being stopped") }
  }

  /// Changes the mode. A mode change does not stop the car, so Stop is sent first. The car drives again only after Continue.
  mutating func chooseMode(_ number: Int, for id: CommandID, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    guard sender.queue.hasRoom else { return CarSender.rejectFull(id, &effects) }
    stopCar(.refused(code: .stopped, "the mode was changed: use continue to drive again"), times: 2, context, at: now, &effects)
    // Pressed buttons belong to the old mode.
    let releases = sidesToRelease.map { CarOutboundMessage.button($0, isDown: false) }
    _ = sender.add(CarQueuedCommand(.mode(number), releases + [.chosenMode(number)], for: id), &effects)
  }

  mutating func press(_ side: CarSide, _ isDown: Bool, for id: CommandID, _ context: CarContext, _ effects: inout Effects) {
    var next = context.mode
    for queued in sender.queue.commands { if case .mode(let number) = queued.purpose { next = number } }
    if let message = buttons.refusal(mode: context.mode, next: next, isDriven: driving.isLeaseHeld) {
      return effects.refuse(command: id, code: .noButtons, message)
    }
    _ = sender.add(CarQueuedCommand(.button(side, isDown), [.button(side, isDown: isDown)], for: id), &effects)
  }

  mutating func shutDown(for id: CommandID, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    guard sender.add(CarQueuedCommand(.shutDown, [.shutDown, .disconnect], for: id), &effects) else { return }
    if driving.isLeaseHeld { revokeLease("the car is being shut down", context, at: now, &effects) }
    stopCar(.refused(code: .stopped, "the car is being shut down"), times: 2, context, at: now, &effects)
  }

  /// Fails the queued commands, because the car may have ignored them, and queues others instead.
  mutating func replaceQueue(with commands: [CarQueuedCommand], _ error: CommandError, _ effects: inout Effects) {
    sender.remove(error, &effects) { _ in true }
    commands.forEach { sender.addAlways($0) }
  }

  mutating func cancel(_ id: CommandID) {
    driving.cancel(id)
    sender.cancel(id)
    standstill.cancel(id)
  }

  // MARK: Messages of the car

  /// Handles one message, if it concerns motion.
  mutating func received(_ report: CarReport, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    switch report {
    case .tiltInterval(let interval): driving.setRequestedInterval(interval)
    case .tiltStopped:
      driving.tiltRejected()
      // The car keeps driving with the last tilt.
      if driving.isLeaseHeld { revokeLease("the car stopped accepting tilt (GyroStop)", context, at: now, &effects) }
    case .buttons(let isEnabled): buttons.setEnabled(isEnabled)
    case .modeInfo, .connectionTest, .other: break
    }
  }

  /// Handles the messages of one read. Each list of modes confirms the commands that were sent before it was requested.
  mutating func received(_ latest: CarReader.Latest, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    if latest.modesCount > 0 { liveness.responseReceived() }
    for _ in 0..<latest.modesCount where sender.responseReceived(stopMessages(context.session.isClosing ? 1 : 3, context), at: now) {
      standstill.stopConfirmed(&effects)
      publish(context, &effects)
    }
    if latest.hasTilt { driving.publishRate(&effects) }
    if latest.hasButtons { buttons.publishEnabled(&effects) }
  }

  // MARK: Time

  mutating func expireLease(_ context: CarContext, at now: Instant, _ effects: inout Effects) {
    if let reason = driving.expiryReason(at: now) { revokeLease(reason, context, at: now, &effects) }
  }

  mutating func expire(_ context: CarContext, at now: Instant, _ effects: inout Effects) {
    expireLease(context, at: now, &effects)
    standstill.expire(at: now, &effects)
    if context.session.isUp { sender.expire(isClosing: context.session.isClosing, at: now) }
  }

  /// Requests a response regularly while the car is driven, and revokes the lease if none arrives in time.
  mutating func checkLiveness(_ context: CarContext, at now: Instant, _ effects: inout Effects) {
    if let due = livenessDue(context), now >= due { sender.addIfPossible(CarQueuedCommand(.livenessCheck, [.modes])) }
    if let hungAt, now >= hungAt { revokeAfterLostMessage(CarLivenessCheck.hungMessage, context, at: now, &effects) }
    // After a mode change Continue waits until the car responds. The lease is revoked only if this takes too long.
    if driving.permit == .starting, let fault { revokeLease(fault, context, at: now, &effects) }
  }

  /// Revokes the lease, because the car may not have received the last message, and would keep driving with the previous tilt.
  private mutating func revokeAfterLostMessage(_ reason: String, _ context: CarContext, at now: Instant, _ effects: inout Effects) {
    guard driving.isLeaseHeld else { return }
    sender.expectLoss(requestsModes: false)
    revokeLease(reason, context, at: now, &effects)
  }

  // MARK: Sending

  mutating func drawSendID() -> SendID { sender.drawID() }

  /// Sends the next message that is due, if the link is free; returns whether it is VideoStream On.
  mutating func advance(_ context: CarContext, at now: Instant, _ effects: inout Effects) -> Bool {
    if tiltsMustWait(context, at: now) {
      for id in driving.removeWaitingCommands() { effects.succeed(command: id, Report(text: remark)) }
    }
    guard context.session.isUp, sender.write.isIdle else { return false }
    if driving.isLeaseHeld, sender.queue.stops.isEmpty, !context.session.isClosing {
      sender.removeWaiting(.status, CarStatus.notWhileDriven, &effects)
    }
    guard let next = nextWrite(context), now >= next.due else { return false }
    switch next.kind {
    case .stop: sender.sendStop(at: now, &effects)
    case .disconnect: sender.sendDisconnect(at: now, &effects)
    case .command:
      if sender.queue.isContinueNext { standstill.continueSent(&effects) }
      return sender.sendCommand(at: now, &effects) == .videoStream(true)
    case .livenessCheck:
      liveness.requestSent(at: now)
      sender.sendLivenessCheck(at: now, &effects)
    case .tilt:
      guard let tilt = driving.startSending(at: now) else { break }
      let frame = tilt.frame(dialect)
      let limit = driving.maxUnacknowledgedBytes(forFrame: frame.count)
      sender.send(tilt, frame, maxUnacknowledged: limit, at: now, &effects)
    }
    return false
  }

  /// Sets the last-will frames.
  mutating func renewLastWill(_ context: CarContext, _ effects: inout Effects) {
    guard context.session.isUp, !context.session.isClosing else { return }
    lastWill.renew(mode: context.mode, sender.queue.commands, &effects)
  }

  /// Handles the end of a write; `failure` is nil if the link has accepted the message.
  mutating func sent(
    _ id: SendID, _ failure: String?, _ context: CarContext, at now: Instant, _ effects: inout Effects
  ) -> WriteResult {
    switch sender.writeEnded(id, failure, at: now) {
    case .nothing: return .nothing
    case .tilt(let tilt): tiltSent(tilt, failure, context, at: now, &effects)
    case .stop(.chosenMode(let number)) where failure == nil:
      modeEntered(number, &effects)
      return .modeEntered(number)
    case .stop(.stop) where failure == nil: standstill.stopSent()
    case .stop: break
    case .command(let queued):
      if let failure { return commandFailed(queued, failure, context, at: now, &effects) }
      return commandSent(queued, context, at: now, &effects)
    case .livenessCheck: if let failure { revokeAfterLostMessage(failure, context, at: now, &effects) }
    case .disconnect: return .disconnected
    }
    return .nothing
  }

  private mutating func tiltSent(
    _ tilt: CarTilt, _ failure: String?, _ context: CarContext, at now: Instant, _ effects: inout Effects
  ) {
    for id in driving.removeCommandsInFlight() {
      effects.append(.complete(id, failure.map { .failure(.notConnected($0)) } ?? .success(Report())))
    }
    if let failure { return revokeAfterLostMessage(failure, context, at: now, &effects) }
    guard driving.isLeaseHeld else { return }
    for (property, angle) in zip(CarProperty.tilts, [tilt.roll, tilt.pitch, tilt.yaw]) {
      effects.publish(property, .float(Double(angle) / CarNumber.scale))
    }
  }

  private mutating func commandSent(
    _ queued: CarQueuedCommand, _ context: CarContext, at now: Instant, _ effects: inout Effects
  ) -> WriteResult {
    var result = WriteResult.nothing
    switch queued.purpose {
    case .greeting, .message, .connectionTest: break
    case .livenessCheck: liveness.requestSent(at: now)
    case .proceed:
      if !CarModes.usesTilt(in: context.mode, dialect) { sender.expectLoss(requestsModes: true) }
      driving.continueSent()
      liveness.restart(at: now)
      publish(context, &effects)
    case .mode(let number):
      modeEntered(number, &effects)
      result = .modeEntered(number)
    case .button(let side, let isDown): buttons.sent(side, isDown: isDown, &effects)
    // The commands status, modeInfo and video complete later.
    case .status: return .statusRequested(queued.id)
    case .modeInfo(let number): return .modeInfoRequested(number)
    case .video(let isOn): return .videoSwitched(isOn, queued.id)
    case .shutDown:
      effects.succeed(command: queued.id, Report(text: "shutdown command sent"))
      return .shutDown
    }
    effects.succeed(command: queued.id)
    return result
  }

  private mutating func commandFailed(
    _ queued: CarQueuedCommand, _ failure: String, _ context: CarContext, at now: Instant, _ effects: inout Effects
  ) -> WriteResult {
    let error = CommandError.notConnected(failure)
    effects.fail(command: queued.id, error)
    switch queued.purpose {
    case .modeInfo: return .modeInfoFailed(error)
    case .video(true): return .videoFailed(error)
    // The car has not started, so the driver must acquire the lease again.
    case .proceed: if driving.isLeaseHeld { revokeLease(failure, context, at: now, &effects) }
    default: break
    }
    return .nothing
  }

  private mutating func modeEntered(_ number: Int, _ effects: inout Effects) {
    // In mode 5 and higher modes the car uses its camera, and ignores commands while the camera starts.
    if dialect == .asBuilt, number >= 5 { sender.expectLoss(requestsModes: true) }
    buttons.modeChanged(&effects)
  }
}
