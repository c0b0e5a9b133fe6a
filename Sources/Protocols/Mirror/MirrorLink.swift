// Link handling: connection, acknowledgements and failures. A failed write is repeated once; if that fails, or the mirror does not
// acknowledge within five seconds, the machine reconnects, because with two writes in flight an acknowledgement would be ambiguous.
// Waiting commands get a reply in time. The contents are chosen in MirrorSession.

extension MirrorMachine {
  /// How long a command waits for the mirror: less than the client's timeout.
  static let commandTimeout: Nanoseconds = 8 * .second
  static let pendingMessage = "pending: sent when the mirror is connected"
  /// A connection that has lasted this long is stable.
  static let settling: Nanoseconds = 5 * .second
  private static let maxEarlyLosses = 3

  mutating func linkCameUp(at now: Instant) {
    cameUp = now
    var session = MirrorSession(reading)
    if let pendingValue = light() { session.enqueue(pendingValue) }
    state = .up(session)
    nextUpdate = nil
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if case .shuttingDown = state { effects.append(.stopped) }
    if isUp { earlyLosses = now &- cameUp < Self.settling ? min(earlyLosses + 1, Self.maxEarlyLosses) : 0 }
    if earlyLosses == Self.maxEarlyLosses {
      trouble =
        "the mirror repeatedly disconnects after the greeting: check the distance, key-file, iv-file and profile"
    }
    leave(reason, &effects)
  }

  var isUp: Bool { if case .up = state { true } else { false } }

  /// There was a problem, and the connection is not yet known to be stable.
  var isDoubtful: Bool { trouble != nil || earlyLosses > 0 }

  /// Clears the problem once the connection is stable and every write is acknowledged.
  mutating func settle(at now: Instant) {
    guard isDoubtful, case .up(let session) = state, session.isAcknowledged, now >= cameUp &+ Self.settling else { return }
    (trouble, earlyLosses) = (nil, 0)
  }

  mutating func leave(_ reason: String, _ effects: inout Effects) {
    if case .up(let session) = state { reading = session.reading }
    state = .down(reason)
    nextUpdate = nil
    for id in waits.keys.sorted() { endWait(id, with: .notConnected(reason), &effects) }
  }

  /// Writes the next message, if the link is free.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down: break
    case .shuttingDown: advanceShutdown(at: now, &effects)
    case .up(var session):
      if let message = session.next(for: username, as: lastSendID &+ 1, at: now) { write(message, &effects) }
      state = .up(session)
    }
  }

  /// Writes are personal data, so they are marked secret and do not appear in recordings.
  mutating func write(_ message: MirrorMessage, _ effects: inout Effects) {
    lastSendID &+= 1
    effects.send(.main, settings.profile.write(message), lastSendID, secret: true)
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down: break
    case .shuttingDown(var shutdown):
      shutdown.sent(id, failure, at: now)
      state = .shuttingDown(shutdown)
    case .up(var session):
      guard let writing = session.writing, writing.id == id else { return }
      guard let failure else {
        session.acknowledged(writing.step, at: now)
        state = .up(session)
        return acknowledged(writing.step, in: session, at: now, &effects)
      }
      guard !writing.isRepeated else { return reset("write failed: \(failure)", &effects) }
      session.failed(writing.step, at: now)
      state = .up(session)
      effects.append(.note("write failed and is repeated: \(failure)"))
    }
  }

  private mutating func acknowledged(_ step: MirrorSession.Step, in session: MirrorSession, at now: Instant, _ effects: inout Effects) {
    switch step {
    case .greeting: break
    case .name(let name), .newName(let name):
      effects.publish(.sentName, .string(name))
      // The display looks at the name only when a value arrives.
      if case .newName = step, let pendingValue = light() { enqueue(pendingValue) }
      for id in waits.keys.sorted() where waits[id]?.name == name { finish(id, &effects) }
      plan(at: now)
    case .value(let pendingValue):
      effects.publish(pendingValue.signal, pendingValue.value)
      if let name = session.acknowledgedName { store.introduce(name, &effects) }
      if let metric = pendingValue.metric {
        store.recordAcknowledgement(metric, on: pendingValue.message == metric.unknown ? nil : clock.day, &effects)
      }
      for id in pendingValue.commands where !session.hasPending(id) { finish(id, &effects) }
    }
  }

  /// The light setting, as a message.
  func light(for command: CommandID? = nil) -> MirrorPendingValue? {
    guard let led = store.now.led, let message = try? MirrorMessage(.brightness, Double(led)) else { return nil }
    return MirrorPendingValue(message: message, metric: nil, value: .int(led), commands: command.map { [$0] } ?? [])
  }

  mutating func enqueue(_ pendingValue: MirrorPendingValue) {
    guard case .up(var session) = state else { return }
    var pendingValue = pendingValue
    pendingValue.name = username
    session.enqueue(pendingValue)
    state = .up(session)
  }

  /// Ends everything whose time is over.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    for id in waits.keys.sorted() where waits[id].map({ now >= $0.until }) == true {
      endWait(id, with: .timeout(milliseconds: Int(Self.commandTimeout / .millisecond)), &effects)
    }
    guard case .up(let session) = state else { return }
    if let writing = session.writing, now >= writing.at &+ MirrorSession.timeout {
      return reset("no acknowledgement from the mirror for 5 s: check its power", &effects)
    }
    if let nextUpdate, now >= nextUpdate { sendUpdate(at: now, &effects) }
    if session.reading.mayLackHeart, session.reading.isOver(at: now) { repeatHeart() }
  }

  private mutating func reset(_ reason: String, _ effects: inout Effects) {
    trouble = reason
    leave(reason, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  // MARK: Waiting commands

  mutating func hold(_ id: CommandID, _ report: Report = Report(), isStored: Bool = true, name: String? = nil, at now: Instant) {
    waits[id] = Wait(until: now &+ Self.commandTimeout, report: report, isStored: isStored, name: name)
  }

  private mutating func finish(_ id: CommandID, _ effects: inout Effects) {
    guard let wait = waits.removeValue(forKey: id) else { return }
    effects.append(.complete(id, .success(wait.report)))
  }

  func pending(_ then: String?) -> String { [Self.pendingMessage, then].compactMap(\.self).joined(separator: "; then ") }

  /// The mirror did not acknowledge in time; a stored setting is sent later.
  private mutating func endWait(_ id: CommandID, with error: CommandError, _ effects: inout Effects) {
    guard let wait = waits.removeValue(forKey: id) else { return }
    effects.append(.complete(id, wait.isStored ? .success(Report(text: pending(wait.report.text))) : .failure(error)))
  }

  mutating func forget(_ id: CommandID) {
    waits[id] = nil
    store.forget(id)
  }
}
