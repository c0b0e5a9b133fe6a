// The requests to the VESC: those of queued commands first, then polls. Passes each response to the components whose values it contains.

struct VESCRequests: Sendable {
  private(set) var polling: VESCPollScheduler
  private(set) var queue: VESCCommandQueue
  private(set) var telemetry: VESCTelemetry

  init(_ options: VESCOptions, _ schema: Schema, _ polling: VESCPollScheduler) {
    self.polling = polling
    queue = VESCCommandQueue(options, schema.properties, timeout: VESCSession.timeout)
    telemetry = VESCTelemetry(options)
  }

  /// When the next request is due.
  var nextDue: Instant { queue.hasRequest ? .min : polling.due }

  /// Returns the request that is due, if any. Its frame is nil if the request has no arguments; its lateness is nil if it is not a poll in
  /// a slot. Commands are sent only to a VESC that responds (`isEstablished`).
  mutating func next(isEstablished: Bool, at now: Instant) -> (command: VESCCommand, frame: [UInt8]?, lateness: Nanoseconds?)? {
    if isEstablished, let command = queue.nextRequest(lacksSetupValues: polling.lacksSetupValues, at: now) {
      return (command, queue.frame(command), nil)
    }
    guard now >= polling.due else { return nil }
    let poll = polling.next(at: now)
    return (poll.command, nil, poll.lateness)
  }

  // MARK: The link and the VESC

  mutating func restore(_ values: [String: [UInt8]], _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    for counter in [VESCProperty.polls, .missed, .timeouts, .badFrames] { publisher.publish(counter, .int(0), &effects) }
    queue.restore(values, &effects)
    telemetry.restore(values, &publisher, &effects)
  }

  mutating func linkCameUp(at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    queue.publishMode(&publisher, &effects)
    polling.linkCameUp(at: now)
  }

  mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    queue.linkWentDown(reason, &effects)
    polling.forgetFirmware()
    telemetry.forgetVESC()
    telemetry.store(&effects)
  }

  mutating func vescStoppedResponding(_ reason: String, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    queue.vescStoppedResponding(reason, &effects)
    polling.forgetFirmware()
    telemetry.forgetVESC()
    publisher.vescStoppedResponding(reason, &effects)
    queue.publishMode(&publisher, &effects)
  }

  // MARK: Responses and timeouts

  /// Passes a response, without its ID, to the components; returns false if it is invalid.
  mutating func received(
    _ command: VESCCommand, _ payload: ArraySlice<UInt8>, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) -> Bool {
    let isValid = handle(command, payload, at: now, &publisher, &effects)
    if !isValid { polling.receivedInvalidResponse() }
    return isValid
  }

  private mutating func handle(
    _ command: VESCCommand, _ payload: ArraySlice<UInt8>, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) -> Bool {
    switch command {
    case .firmware:
      guard let firmware = VESCFirmware(payload) else { return false }
      polling.received(firmware)
      telemetry.publish(firmware, &publisher, &effects)
    case .values, .setupValues, .selectedSetupValues:
      let content = telemetry.read(command, payload, lacksSetupValues: polling.lacksSetupValues, at: now, &publisher, &effects)
      if content == .invalid { return false }
      if let count = telemetry.values[.vescs] { queue.setVESCCount(count) }
      if content == .valuesAfterRestart { queue.vescBeganToRespond(&publisher, &effects) }
      if command != .selectedSetupValues { queue.publishMode(&publisher, &effects) }
    case .limits:
      guard let board = VESCBoard(payload) else { return false }
      if telemetry.setReported(board.drivetrain) { publisher.forgetReasons() }
      queue.limitsReceived(board, &publisher, &effects)
    case .setLimits: queue.writeAcknowledged()
    case .pingCAN: queue.scanResultReceived(payload, &effects)
    default: return false
    }
    return true
  }

  /// Handles a valid response, after `received`. `isFirst`: it is the first one on this link, or after a silence; `noise`: the number of
  /// runs of invalid data.
  mutating func responded(
    to request: VESCSession.Request, isFirst: Bool, noise: Int, at now: Instant, _ publisher: inout VESCPublisher,
    _ effects: inout Effects
  ) {
    if isFirst {
      publisher.vescBeganToRespond(&effects)
      queue.vescBeganToRespond(&publisher, &effects)
    }
    polling.responded(to: request, isFirst: isFirst, noise: noise, at: now, &publisher, &effects)
  }

  mutating func timedOut(
    _ command: VESCCommand, noise: Int, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    polling.timedOut(command, noise: noise, at: now, &publisher, &effects)
    queue.timedOut(command, lacksSetupValues: polling.lacksSetupValues, &publisher, &effects)
  }

  /// Reports the progress of a request in flight, if a report is due.
  mutating func reportProgress(of command: VESCCommand, at now: Instant, _ effects: inout Effects) {
    if let due = queue.progressDue(command), now >= due { queue.reportProgress(at: now, &effects) }
  }

  // MARK: Clients and the disk

  mutating func setMode(
    _ value: Value, for id: CommandID, isReachable: Bool, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    queue.setMode(value, for: id, isReachable: isReachable, &publisher, &effects)
  }

  mutating func scan(for id: CommandID, _ effects: inout Effects) { queue.scan(for: id, &effects) }
  mutating func cancel(_ id: CommandID) { queue.cancel(id) }
  mutating func failCommands(_ error: CommandError, _ effects: inout Effects) { queue.failCommands(error, &effects) }
  mutating func storeDistance(_ effects: inout Effects) { telemetry.store(&effects) }

  mutating func stored(_ key: String, _ failure: String?, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    telemetry.stored(key, failure, &publisher, &effects)
    queue.stored(key, failure, &publisher, &effects)
  }
}
