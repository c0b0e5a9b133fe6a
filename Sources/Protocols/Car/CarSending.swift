// What goes out next: a stop before a word before a tilt, one write with the link at a time. When each may go follows from
// the state alone; `nextTurn` and `advance` read it the same way, so that nothing that is due waits for another reason.
// Facts: autott.md §8 and §9.

extension CarMachine {
  var isUp: Bool { if case .down = state { false } else { true } }
  var isEnding: Bool { if case .ending = state { true } else { false } }
  /// The car has answered over this link.
  var hasSpoken: Bool {
    switch state {
    case .down, .greeting, .silent: false
    case .ready, .ending: true
    }
  }

  /// Tilts go out, or would if there were nothing else to say.
  var isStreaming: Bool { driving.isRunning && CarModes.takesTilt(in: modes.current, options.dialect) }

  /// When the first errand has its turn; nil: there is none, or the car would not hear it.
  var errandTurn: Instant? {
    guard !camera.isBlocking, !waitsToProceed, let turn = outbox.turn(isStreaming: isStreaming) else { return nil }
    // The car runs its programs on the thread that reads: what comes meanwhile is read at once, and behind a word that it cannot
    // use the rest is lost. A driver's words are not of that kind and do not wait: the car stands until it reads Continue.
    return driving.isHeld ? turn : max(turn, status.deadline ?? .min)
  }

  /// Continue is next, and the car has not shown yet that it hears what follows another mode.
  private var waitsToProceed: Bool { !settling.isSettled && outbox.errands.first?.purpose == .proceed }

  /// Where the car drives by itself no tilt tells whether it can still be reached: it is asked for its modes instead.
  var pulseTurn: Instant? {
    guard driving.isRunning, !isStreaming else { return nil }
    return max(pulse.asked &+ CarPulse.aloneInterval, outbox.quietUntil)
  }

  private static let maxPulses = 2

  /// When Disconnect may be said: a car that may have missed Stop gets what time there is.
  private var lastWordTurn: Instant? {
    guard case .ending(let until) = state else { return nil }
    return settling.isSettled && !settling.owesStop ? outbox.quietUntil : max(outbox.quietUntil, until &- 200 * .millisecond)
  }

  var tiltTurn: Instant? { isStreaming ? driving.due.map { max($0, outbox.quietUntil) } : nil }

  /// The first errand goes before the next tilt. From its turn on no more than one tilt goes out, and that only when it is late.
  private var isErrandNext: Bool {
    guard let errand = errandTurn else { return false }
    return (tiltTurn ?? pulseTurn).map { errand <= $0 } ?? true
  }

  /// When something can go out over a link that is free.
  var nextTurn: Instant? {
    if !outbox.stops.isEmpty { return outbox.stopDue }
    if isEnding { return lastWordTurn }
    return isErrandNext ? errandTurn.map { max($0, outbox.tiltsAreThrough) } : tiltTurn ?? pulseTurn
  }

  /// Sends what is due, if the link is free for it.
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

  /// A set-point that has to wait for a word is answered at once: the driver's next one is awaited, whatever the car is told.
  private mutating func answerWhatWaits(at now: Instant, _ effects: inout Effects) {
    let hasTurn = errandTurn.map { now >= $0 } ?? false
    guard driving.permit == .granting || hasTurn || !outbox.stops.isEmpty || now < outbox.quietUntil else { return }
    for id in driving.takeWaiting() { effects.append(.complete(id, .success(Report(text: remark)))) }
  }

  /// What a driver should know whose set-point has no effect yet.
  var remark: String? {
    driving.permit == .granting && !settling.isSettled ? "the car is busy with its new mode: it drives once it answers" : nil
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
