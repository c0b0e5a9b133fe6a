// Link handling: connection, acknowledgements and failures. A failed write is retried once. If the retry fails, or the mirror does not
// acknowledge a write within five seconds, the machine reconnects, because with two writes in flight an acknowledgement would be ambiguous.
// Pending commands are completed before the client's timeout. MirrorSession decides which message is sent.

extension MirrorMachine {
  /// How long a command waits for the mirror: less than the client's timeout.
  static let commandTimeout: Nanoseconds = 8 * .second
  static let pendingMessage = "pending: sent when the mirror is connected"
  /// The time after which a connection counts as stable.
  static let stableAfter: Nanoseconds = 5 * .second
  private static let maxEarlyDisconnects = 3

  mutating func linkUp(at now: Instant) {
    connectedAt = now
    var session = MirrorSession(readWindow)
    if let pendingValue = pendingBrightness() { session.enqueue(pendingValue) }
    state = .up(session)
    nextUpdate = nil
  }

  mutating func linkDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if case .shuttingDown = state { effects.append(.stopped) }
    if isUp { earlyDisconnects = now &- connectedAt < Self.stableAfter ? min(earlyDisconnects + 1, Self.maxEarlyDisconnects) : 0 }
    if earlyDisconnects == Self.maxEarlyDisconnects {
      fault =
        "the mirror repeatedly disconnects after the greeting: check the distance, key-file, iv-file and profile"
    }
    handleDisconnect(reason, &effects)
  }

  var isUp: Bool { if case .up = state { true } else { false } }

  /// Whether there was a fault or an early disconnect, and there has been no stable connection since.
  var isUnstable: Bool { fault != nil || earlyDisconnects > 0 }

  /// Clears the fault once the connection is stable and every write is acknowledged.
  mutating func clearFaultIfStable(at now: Instant) {
    guard isUnstable, case .up(let session) = state, session.isAcknowledged, now >= connectedAt &+ Self.stableAfter else { return }
    (fault, earlyDisconnects) = (nil, 0)
  }

  mutating func handleDisconnect(_ reason: String, _ effects: inout Effects) {
    if case .up(let session) = state { readWindow = session.readWindow }
    state = .down(reason)
    nextUpdate = nil
    for id in pendingCommands.keys.sorted() { fail(id, with: .notConnected(reason), &effects) }
  }

  /// Writes the next message, if the link is free.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down: break
    case .shuttingDown: advanceShutdown(at: now, &effects)
    case .up(var session):
      if let message = session.nextMessage(for: username, as: lastSendID &+ 1, at: now) { write(message, &effects) }
      state = .up(session)
    }
  }

  /// Writes a message. Writes contain personal data, so they are marked secret and do not appear in recordings.
  mutating func write(_ message: MirrorMessage, _ effects: inout Effects) {
    lastSendID &+= 1
    effects.send(.main, settings.profile.encode(message), lastSendID, secret: true)
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down: break
    case .shuttingDown(var shutdown):
      shutdown.sent(id, failure, at: now)
      state = .shuttingDown(shutdown)
    case .up(var session):
      guard let write = session.writeInFlight, write.id == id else { return }
      guard let failure else {
        session.acknowledged(write.step, at: now)
        state = .up(session)
        return acknowledged(write.step, in: session, at: now, &effects)
      }
      guard !write.isRetry else { return reset("write failed: \(failure)", &effects) }
      session.failed(write.step, at: now)
      state = .up(session)
      effects.append(.note("write failed: \(failure); retrying"))
    }
  }

  private mutating func acknowledged(_ step: MirrorSession.Step, in session: MirrorSession, at now: Instant, _ effects: inout Effects) {
    switch step {
    case .greeting: break
    case .name(let name), .newName(let name):
      effects.publish(.sentName, .string(name))
      // The display reads the name only when a value arrives.
      if case .newName = step, let pendingValue = pendingBrightness() { enqueue(pendingValue) }
      for id in pendingCommands.keys.sorted() where pendingCommands[id]?.name == name { finish(id, &effects) }
      scheduleUpdates(at: now)
    case .value(let pendingValue):
      effects.publish(pendingValue.sentProperty, pendingValue.value)
      if let name = session.acknowledgedName { acknowledgements.record(name: name, &effects) }
      if let metric = pendingValue.metric {
        acknowledgements.record(metric, on: pendingValue.message == metric.withdrawalMessage ? nil : clock.day, &effects)
      }
      for id in pendingValue.commands where !session.hasPending(id) { finish(id, &effects) }
    }
  }

  /// The setting `led` as a value to send; nil if it is not set.
  func pendingBrightness(for command: CommandID? = nil) -> MirrorPendingValue? {
    guard case .int(let led)? = persisted[.led], let message = try? MirrorMessage(.brightness, Double(led)) else { return nil }
    return MirrorPendingValue(message: message, metric: nil, value: .int(led), commands: command.map { [$0] } ?? [])
  }

  mutating func enqueue(_ pendingValue: MirrorPendingValue) {
    guard case .up(var session) = state else { return }
    var pendingValue = pendingValue
    pendingValue.name = username
    session.enqueue(pendingValue)
    state = .up(session)
  }

  /// Handles expired timeouts.
  mutating func handleTimeouts(at now: Instant, _ effects: inout Effects) {
    for id in pendingCommands.keys.sorted() where pendingCommands[id].map({ now >= $0.until }) == true {
      fail(id, with: .timeout(milliseconds: Int(Self.commandTimeout / .millisecond)), &effects)
    }
    guard case .up(let session) = state else { return }
    if let write = session.writeInFlight, now >= write.sentAt &+ MirrorSession.timeout {
      return reset("no acknowledgement from the mirror for 5 s: check its power", &effects)
    }
    if let nextUpdate, now >= nextUpdate { sendUpdate(at: now, &effects) }
    if session.readWindow.hasPossiblyMissedHeartRate, session.readWindow.hasEnded(at: now) { resendHeartRate() }
  }

  private mutating func reset(_ reason: String, _ effects: inout Effects) {
    fault = reason
    handleDisconnect(reason, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  // MARK: Pending commands

  mutating func awaitAcknowledgement(
    _ id: CommandID, _ report: Report = Report(), isStored: Bool = true, name: String? = nil, at now: Instant
  ) {
    pendingCommands[id] = PendingCommand(until: now &+ Self.commandTimeout, report: report, isStored: isStored, name: name)
  }

  private mutating func finish(_ id: CommandID, _ effects: inout Effects) {
    guard let command = pendingCommands.removeValue(forKey: id) else { return }
    effects.append(.complete(id, .success(command.report)))
  }

  /// The report of a command whose setting is sent later, with a remark.
  func pending(_ then: String?) -> String { [Self.pendingMessage, then].compactMap(\.self).joined(separator: "; then ") }

  /// Ends commands that the mirror has not acknowledged in time; stored settings are sent later.
  private mutating func fail(_ id: CommandID, with error: CommandError, _ effects: inout Effects) {
    guard let command = pendingCommands.removeValue(forKey: id) else { return }
    effects.append(.complete(id, command.isStored ? .success(Report(text: pending(command.report.text))) : .failure(error)))
  }

  mutating func cancel(_ id: CommandID) {
    pendingCommands[id] = nil
    persisted.cancel(id)
  }
}
