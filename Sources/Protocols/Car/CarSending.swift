// Decides what is sent next: a stop before a command before a tilt, one write in flight at a time. `nextTurn` and `advance` derive
// the times from the state in the same way.
// Source: autott.md §8 and §9.

extension CarMachine {
  var isUp: Bool { if case .down = state { false } else { true } }
  var isEnding: Bool { if case .ending = state { true } else { false } }
  /// The car has responded over this link.
  var hasSpoken: Bool {
    switch state {
    case .down, .greeting, .silent: false
    case .ready, .ending: true
    }
  }

  /// Tilts are sent, or would be if no command were queued.
  var isStreaming: Bool { driving.isRunning && CarModes.takesTilt(in: modes.current, options.dialect) }

  /// When the first command is due; nil: there is none, or the car would ignore it.
  var errandTurn: Instant? {
    guard !camera.isBlocking, !waitsToProceed, let turn = outbox.turn(isStreaming: isStreaming) else { return nil }
    // The car runs its programs on the thread that reads: data that arrives meanwhile is read at once, and the rest after a command
    // that it cannot handle is lost. A driver's commands are not of that kind: the car stands until it reads Continue.
    return driving.isHeld ? turn : max(turn, status.deadline ?? .min)
  }

  /// Continue is next, and the car has not responded since the mode change.
  private var waitsToProceed: Bool { !settling.isSettled && outbox.errands.first?.purpose == .proceed }

  /// Where the car drives autonomously no tilt detects a lost car, so its modes are requested instead.
  var pulseTurn: Instant? {
    guard driving.isRunning, !isStreaming else { return nil }
    return max(pulse.asked &+ CarPulse.aloneInterval, outbox.quietUntil)
  }

  private static let maxPulses = 2

  /// When Disconnect may be sent: if the car may have missed Stop, as late as possible.
  private var lastWordTurn: Instant? {
    guard case .ending(let until) = state else { return nil }
    return settling.isSettled && !settling.owesStop ? outbox.quietUntil : max(outbox.quietUntil, until &- 200 * .millisecond)
  }

  var tiltTurn: Instant? { isStreaming ? driving.due.map { max($0, outbox.quietUntil) } : nil }

  /// The first command is sent before the next tilt. Once it is due, at most one late tilt is sent.
  private var isErrandNext: Bool {
    guard let errand = errandTurn else { return false }
    return (tiltTurn ?? pulseTurn).map { errand <= $0 } ?? true
  }

  /// When the next write is possible, once the link is free.
  var nextTurn: Instant? {
    if !outbox.stops.isEmpty { return outbox.stopDue }
    if isEnding { return lastWordTurn }
    return isErrandNext ? errandTurn.map { max($0, outbox.tiltsAreThrough) } : tiltTurn ?? pulseTurn
  }

  /// Sends what is due, if the link is free.
  mutating func advance(at now: Instant, _ effects: inout Effects) {
    answerWhatWaits(at: now, &effects)
    guard isUp, sending == nil else { return }
    if outbox.stops.isEmpty, !isEnding { dropUntimelyErrands(&effects) }
    guard let turn = nextTurn, now >= turn else { return }
    if !outbox.stops.isEmpty {
      if let word = outbox.sayStop() { say(word, .stop(word), at: now, &effects) }
    } else if isEnding {
      say(.disconnect, .lastWord, at: now, &effects)
    } else if isErrandNext {
      if let word = outbox.carry() { say(word, .errand(word), at: now, &effects) }
    } else if tiltTurn == nil {
      let frame = CarWord.modes.frame(options.dialect)
      pulse.ask(at: now)
      outbox.spoke(isStop: false, at: now)
      effects.append(.sendUnlessBehind(.main, frame, nextSend(.pulse, at: now), most: Self.maxPulses * frame.count))
    } else if let tilt = driving.take(at: now) {
      let frame = tilt.frame(options.dialect)
      outbox.tilted(at: now)
      effects.append(.sendUnlessBehind(.main, frame, nextSend(.tilt(tilt), at: now), most: driving.maxBehind(frame.count)))
    }
  }

  /// Replies early to a set-point that waits for a command, because the driver's next one must not be delayed.
  private mutating func answerWhatWaits(at now: Instant, _ effects: inout Effects) {
    let hasTurn = errandTurn.map { now >= $0 } ?? false
    guard driving.permit == .granting || hasTurn || !outbox.stops.isEmpty || now < outbox.quietUntil else { return }
    for id in driving.takeWaiting() { effects.append(.complete(id, .success(Report(text: remark)))) }
  }

  /// A remark for a driver whose set-point has no effect yet.
  var remark: String? {
    driving.permit == .granting && !settling.isSettled ? "the car is changing its mode: it drives once it responds" : nil
  }

  private mutating func say(_ word: CarWord, _ cargo: Cargo, at now: Instant, _ effects: inout Effects) {
    outbox.spoke(isStop: word == .stop, at: now)
    if word == .proceed {
      drivesFromNowOn(&effects)
      settling.proceeds()
    }
    effects.send(.main, word.frame(options.dialect), nextSend(cargo, at: now))
    if case .errand(.videoStream(true)) = cargo { openCamera(at: now, &effects) }
  }

  private mutating func nextSend(_ cargo: Cargo, at now: Instant) -> SendID {
    let id = drawSendID()
    sending = (id, cargo, now)
    return id
  }

  mutating func drawSendID() -> SendID {
    lastSend &+= 1
    return lastSend
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard let sending, sending.id == id else { return }
    self.sending = nil
    switch sending.cargo {
    case .tilt(let tilt):
      outbox.tilted(at: now)
      tiltSent(tilt, failure, at: now, &effects)
    case .stop(let word):
      outbox.spoke(isStop: word == .stop, at: now)
      stopSent(word, failure, at: now, &effects)
    case .errand(let word):
      outbox.spoke(isStop: false, at: now)
      errandSent(word, failure, at: now, &effects)
    case .pulse:
      if failure == nil { settling.asked(at: now) }
      guard let failure, driving.isHeld else { return }
      settling.unsettle()
      loseLease(failure, at: now, &effects)
    case .lastWord: finish(&effects)
    }
  }
}
