// What goes out next: a stop before a word before a tilt, one write with the link at a time. When each may go follows from
// the state alone; `nextTurn` and `advance` read it the same way, so that nothing that is due waits for another reason.
// Facts: autott.md §8 and §9.

extension CarMachine {
  var isUp: Bool { if case .down = state { false } else { true } }
  var isEnding: Bool { if case .ending = state { true } else { false } }

  /// Tilts go out, or would if there were nothing else to say.
  var isStreaming: Bool { driving.isRunning && CarModes.takesTilt(in: modes.current, options.dialect) }

  /// When the first errand has its turn; nil: there is none, or the car would not hear it.
  var errandTurn: Instant? {
    guard !camera.isBlocking, let turn = outbox.turn(isStreaming: isStreaming) else { return nil }
    // The car runs its programs on the thread that reads: what comes meanwhile is read at once and half of it is lost.
    return max(turn, status.deadline ?? .min)
  }

  /// Where the car drives by itself no tilt tells whether it can still be reached: it is asked for its modes instead.
  var pulseTurn: Instant? {
    guard driving.isRunning, !isStreaming else { return nil }
    return max(pulsed == .min ? .min : pulsed &+ Self.pulse, outbox.quietUntil)
  }

  private static let pulse: Nanoseconds = 250 * .millisecond
  private static let mostPulses = 2

  /// When Disconnect may be said: a car that may have missed Stop gets what time there is.
  private var lastWordTurn: Instant? {
    guard case .ending(let until) = state else { return nil }
    return settling.isSettled ? outbox.quietUntil : max(outbox.quietUntil, until &- 200 * .millisecond)
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
      pulsed = now
      outbox.spoke(isStop: false, at: now)
      effects.append(.sendUnlessBehind(.main, frame, nextSend(.pulse, at: now), most: Self.mostPulses * frame.count))
    } else if let tilt = driving.take(at: now) {
      let frame = tilt.frame(options.dialect)
      outbox.tilted(at: now)
      effects.append(.sendUnlessBehind(.main, frame, nextSend(.tilt(tilt), at: now), most: driving.mostBehind(frame.count)))
    }
  }

  private mutating func say(_ word: CarWord, _ cargo: Cargo, at now: Instant, _ effects: inout Effects) {
    outbox.spoke(isStop: word == .stop, at: now)
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
