// Decides what is sent next: a stop before a command before a tilt, one write in flight at a time. `nextTurn` and `advance` derive
// the times from the state in the same way.
// Source: autott.md §8 and §9.

extension CarMachine {
  /// Tilts are sent, or would be if no command were queued.
  var isStreaming: Bool { driving.isRunning && CarModes.takesTilt(in: modes.current, options.dialect) }

  /// When the first command is due; nil: there is none, or the car would ignore it.
  var commandTurn: Instant? {
    guard !camera.isBlocking, !waitsToProceed, let turn = queue.turn(isStreaming: isStreaming) else { return nil }
    // The car runs its programs on the thread that reads: data that arrives meanwhile is read at once, and the rest after a command
    // that it cannot handle is lost. A driver's commands are not of that kind: the car stands until it reads Continue.
    return driving.isHeld ? turn : max(turn, status.deadline ?? .min)
  }

  /// Continue is next, and the car has not responded since the mode change.
  private var waitsToProceed: Bool { !confirmation.isReliable && queue.commands.first?.purpose == .proceed }

  /// Where the car drives autonomously no tilt detects a lost car, so its modes are requested instead.
  var livenessTurn: Instant? {
    guard driving.isRunning, !isStreaming else { return nil }
    return max(liveness.asked &+ CarLivenessCheck.aloneInterval, queue.quietUntil)
  }

  private static let maxLivenessChecks = 2

  /// When Disconnect may be sent: if the car may have missed Stop, as late as possible.
  private var disconnectTurn: Instant? {
    guard case .ending(let until) = session.state else { return nil }
    return confirmation.isReliable && !confirmation.owesStop ? queue.quietUntil : max(queue.quietUntil, until &- 200 * .millisecond)
  }

  var tiltTurn: Instant? { isStreaming ? driving.due.map { max($0, queue.quietUntil) } : nil }

  /// The first command is sent before the next tilt. Once it is due, at most one late tilt is sent.
  private var isCommandNext: Bool {
    guard let queued = commandTurn else { return false }
    return (tiltTurn ?? livenessTurn).map { queued <= $0 } ?? true
  }

  /// When the next write is possible, once the link is free.
  var nextTurn: Instant? {
    if !queue.stops.isEmpty { return queue.stopDue }
    if session.isEnding { return disconnectTurn }
    return isCommandNext ? commandTurn.map { max($0, queue.tiltsAreThrough) } : tiltTurn ?? livenessTurn
  }

  /// Sends what is due, if the link is free.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    completeWaitingTilts(at: now, &effects)
    guard session.isUp, sending == nil else { return }
    if queue.stops.isEmpty, !session.isEnding { dropStatusRequests(&effects) }
    guard let turn = nextTurn, now >= turn else { return }
    if !queue.stops.isEmpty {
      if let word = queue.takeStop() { say(word, .stop(word), at: now, &effects) }
    } else if session.isEnding {
      say(.disconnect, .disconnect, at: now, &effects)
    } else if isCommandNext {
      if let word = queue.takeCommand() { say(word, .command(word), at: now, &effects) }
    } else if tiltTurn == nil {
      let frame = CarOutboundMessage.modes.frame(options.dialect)
      liveness.ask(at: now)
      queue.messageSent(isStop: false, at: now)
      effects.append(.sendUnlessBehind(.main, frame, beginWrite(.liveness, at: now), most: Self.maxLivenessChecks * frame.count))
    } else if let tilt = driving.take(at: now) {
      let frame = tilt.frame(options.dialect)
      queue.tiltSent(at: now)
      effects.append(.sendUnlessBehind(.main, frame, beginWrite(.tilt(tilt), at: now), most: driving.maxBehind(frame.count)))
    }
  }

  /// Replies early to a set-point that waits for a command, because the driver's next one must not be delayed.
  private mutating func completeWaitingTilts(at now: Instant, _ effects: inout Effects) {
    let hasTurn = commandTurn.map { now >= $0 } ?? false
    guard driving.permit == .granting || hasTurn || !queue.stops.isEmpty || now < queue.quietUntil else { return }
    for id in driving.takeWaiting() { effects.append(.complete(id, .success(Report(text: remark)))) }
  }

  /// A remark for a driver whose set-point has no effect yet.
  var remark: String? {
    driving.permit == .granting && !confirmation.isReliable ? "the car is changing its mode: it drives once it responds" : nil
  }

  private mutating func say(_ word: CarOutboundMessage, _ purpose: WritePurpose, at now: Instant, _ effects: inout Effects) {
    queue.messageSent(isStop: word == .stop, at: now)
    if word == .proceed {
      drivesFromNowOn(&effects)
      confirmation.continued()
    }
    effects.send(.main, word.frame(options.dialect), beginWrite(purpose, at: now))
    if case .command(.videoStream(true)) = purpose { camera.requested(at: now, &effects) }
  }

  private mutating func beginWrite(_ purpose: WritePurpose, at now: Instant) -> SendID {
    let id = drawSendID()
    sending = (id, purpose, now)
    return id
  }

  mutating func drawSendID() -> SendID {
    lastSend &+= 1
    return lastSend
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard let sending, sending.id == id else { return }
    self.sending = nil
    switch sending.purpose {
    case .tilt(let tilt):
      queue.tiltSent(at: now)
      tiltSent(tilt, failure, at: now, &effects)
    case .stop(let word):
      queue.messageSent(isStop: word == .stop, at: now)
      stopSent(word, failure, at: now, &effects)
    case .command(let word):
      queue.messageSent(isStop: false, at: now)
      commandSent(word, failure, at: now, &effects)
    case .liveness:
      if failure == nil { confirmation.asked(at: now) }
      guard let failure, driving.isHeld else { return }
      confirmation.expectLoss()
      loseLease(failure, at: now, &effects)
    case .disconnect: finish(&effects)
    }
  }
}
