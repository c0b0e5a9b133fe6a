// Link handling: connection, acknowledgements and failures. A failed write is repeated once; if that fails, or the mirror does not
// acknowledge within five seconds, the machine reconnects, because with two writes in flight an acknowledgement would be ambiguous.
// Waiting commands get a reply in time. The contents are chosen in MirrorSession.

extension MirrorMachine {
  /// How long a command waits for the mirror: less than the client's timeout.
  static let commandTimeout: Nanoseconds = 8 * .second
  static let pendingWords = "pending: sent when the mirror is connected"
  /// A connection that has lasted this long is stable.
  static let settling: Nanoseconds = 5 * .second
  private static let maxEarlyLosses = 3

  mutating func linkCameUp(at now: Instant) {
    cameUp = now
    var session = MirrorSession(reading)
    if let parcel = light() { session.put(parcel) }
    state = .up(session)
    wave = nil
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if case .parting = state { effects.append(.stopped) }
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
    wave = nil
    for id in waits.keys.sorted() { give(id, up: .notConnected(reason), &effects) }
  }

  /// Writes the next message, if the link is free.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down: break
    case .parting: part(at: now, &effects)
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
    case .parting(var parting):
      parting.sent(id, failure, at: now)
      state = .parting(parting)
    case .up(var session):
      guard let writing = session.writing, writing.id == id else { return }
      guard let failure else {
        session.acknowledged(writing.word, at: now)
        state = .up(session)
        return acknowledged(writing.word, in: session, at: now, &effects)
      }
      guard !writing.isRepeated else { return reset("write failed: \(failure)", &effects) }
      session.failed(writing.word, at: now)
      state = .up(session)
      effects.append(.note("write failed and is repeated: \(failure)"))
    }
  }

  private mutating func acknowledged(_ word: MirrorSession.Word, in session: MirrorSession, at now: Instant, _ effects: inout Effects) {
    switch word {
    case .greeting: break
    case .name(let name), .newName(let name):
      effects.publish(.sentName, .string(name))
      // The display looks at the name only when a value arrives.
      if case .newName = word, let parcel = light() { put(parcel) }
      for id in waits.keys.sorted() where waits[id]?.name == name { finish(id, &effects) }
      plan(at: now)
    case .value(let parcel):
      effects.publish(parcel.signal, parcel.value)
      if let name = session.told { keeping.introduce(name, &effects) }
      if let metric = parcel.metric { keeping.tell(metric, on: parcel.message == metric.unknown ? nil : clock.day, &effects) }
      for id in parcel.commands where !session.owes(id) { finish(id, &effects) }
    }
  }

  /// The light setting, as a message.
  func light(for command: CommandID? = nil) -> MirrorParcel? {
    guard let led = keeping.now.led, let message = try? MirrorMessage(.brightness, Double(led)) else { return nil }
    return MirrorParcel(message: message, metric: nil, value: .int(led), commands: command.map { [$0] } ?? [])
  }

  mutating func put(_ parcel: MirrorParcel) {
    guard case .up(var session) = state else { return }
    var parcel = parcel
    parcel.name = username
    session.put(parcel)
    state = .up(session)
  }

  /// Ends everything whose time is over.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    for id in waits.keys.sorted() where waits[id].map({ now >= $0.until }) == true {
      give(id, up: .timeout(milliseconds: Int(Self.commandTimeout / .millisecond)), &effects)
    }
    guard case .up(let session) = state else { return }
    if let writing = session.writing, now >= writing.at &+ MirrorSession.timeout {
      return reset("no acknowledgement from the mirror for 5 s: check its power", &effects)
    }
    if let wave, now >= wave { flush(at: now, &effects) }
    if session.reading.mayLackHeart, session.reading.isOver(at: now) { repeatHeart() }
  }

  private mutating func reset(_ reason: String, _ effects: inout Effects) {
    trouble = reason
    leave(reason, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  // MARK: Waiting commands

  mutating func hold(_ id: CommandID, _ report: Report = Report(), isKept: Bool = true, name: String? = nil, at now: Instant) {
    waits[id] = Wait(until: now &+ Self.commandTimeout, report: report, isKept: isKept, name: name)
  }

  private mutating func finish(_ id: CommandID, _ effects: inout Effects) {
    guard let wait = waits.removeValue(forKey: id) else { return }
    effects.append(.complete(id, .success(wait.report)))
  }

  func pending(_ then: String?) -> String { [Self.pendingWords, then].compactMap(\.self).joined(separator: "; then ") }

  /// The mirror did not acknowledge in time; a stored setting is sent later.
  private mutating func give(_ id: CommandID, up error: CommandError, _ effects: inout Effects) {
    guard let wait = waits.removeValue(forKey: id) else { return }
    effects.append(.complete(id, wait.isKept ? .success(Report(text: pending(wait.report.text))) : .failure(error)))
  }

  mutating func forget(_ id: CommandID) {
    waits[id] = nil
    keeping.forget(id)
  }
}
