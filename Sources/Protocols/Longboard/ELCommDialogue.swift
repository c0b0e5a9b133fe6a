// Who speaks when: what the machine sends, what it makes of an answer, and of none. A poll that was given up may still be
// answered: the next one waits for that as well, so that never two are in the board's buffer for long. Where the dialect is
// not configured, ELCommDetection finds it first, and again after a silence.
// Facts: control bytes from ProjectTORQ.ino; 66 is the app's own constant, which no board takes for a word on the buzzer.

/// What a board as built is told by one byte; any other leaves the buzzer as it is.
enum ELCommControl {
  static let on: UInt8 = 55
  static let off: UInt8 = 45
  static let neutral: UInt8 = 66
}

extension ELCommMachine {
  /// After so many misses in a row the board is silent: two seconds of them.
  private static let maxMisses = 5
  private static let maxMissesDocumented = 2
  /// Twice is certain.
  static let offsNeeded = 2
  /// Longer than any pass of the board: of two bytes that are so far apart one is heard.
  static let offPause: Nanoseconds = 200 * .millisecond

  // MARK: As built

  /// Sends the next byte. The first on a link is off, whatever is wanted.
  mutating func ask(owing owed: Int, at now: Instant, _ effects: inout Effects) {
    decoder.close()
    publishExtra(&effects)
    let isFirst = lastSpoke == .min
    let byte =
      isFirst ? ELCommControl.off : buzzer.isOn ? ELCommControl.on : offsHeard < Self.offsNeeded ? ELCommControl.off : ELCommControl.neutral
    // A first off confirms nothing to somebody who wants it on.
    let wish = byte == ELCommControl.off && buzzer.isOn ? -1 : buzzer.wish
    if byte == ELCommControl.on { offsHeard = 0 }
    send([byte], wish: wish, at: now, &effects)
    state = .asking(Poll(byte: byte, wish: wish, sent: now, owed: owed + 1))
  }

  private mutating func answered(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    var poll = poll
    // What answers an earlier byte says nothing of this one's round trip.
    if poll.owed == 1, !poll.wasAnswered { timing.add(answered: now, roundTrip: now &- poll.sent, lateness: nil) }
    poll.owed -= 1
    poll.wasAnswered = true
    guard poll.owed <= 0 else { return state = .asking(poll) }
    settle(poll, at: now, &effects)
  }

  /// The board has answered, and everything that it could.
  private mutating func settle(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    if poll.byte == ELCommControl.off { offsHeard = min(offsHeard + 1, Self.offsNeeded) }
    buzzer.heard(poll.wish, at: now, &effects)
    state = .resting(asked: poll.sent)
  }

  // MARK: As documented

  mutating func answer(at now: Instant, _ effects: inout Effects) {
    // The first answer on a link is off, whatever is wanted.
    let isFirst = lastSpoke == .min
    let isOn = buzzer.isOn && !isFirst
    send(isOn ? settings.on : settings.off, wish: isOn == buzzer.isOn ? buzzer.wish : -1, at: now, &effects)
    state = .attending(until: now &+ Self.boardTimeout, owesAnswer: false)
  }

  // MARK: What comes, or does not

  /// A whole message came.
  mutating func heard(at now: Instant, _ effects: inout Effects) {
    misses = 0
    switch state {
    case .down, .stopping, .resting: break
    case .draining, .probing: heardDetecting(at: now, &effects)
    case .asking(let poll): answered(poll, at: now, &effects)
    case .attending(let until, let owesAnswer):
      if !owesAnswer, lastSpoke != .min { timing.add(answered: now, roundTrip: now &- lastSpoke, lateness: nil) }
      state = .attending(until: until, owesAnswer: true)
    }
  }

  /// Whatever was due before this moment and did not come.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    buzzer.expire(at: now, &effects)
    if decoder.isOpen, now >= lastByteAt &+ Self.closing {
      decoder.close()
      publishExtra(&effects)
    }
    if sending != nil, now >= timeout, isUp {
      sending = nil
      let reason = "the link does not take what is written"
      effects.append(.resetLink(.main, reason: reason))
      return linkWentDown(reason, &effects)
    }
    switch state {
    case .draining(let until) where now >= until && sending == nil: probe(at: now, &effects)
    case .probing(let probe) where sending == nil && now >= probe.sent &+ Self.probeTime: judge(probe, at: now, &effects)
    case .asking(var poll) where now >= deadline(of: poll):
      if poll.wasAnswered { return settle(poll, at: now, &effects) }
      missed(at: now, &effects)
      if isSilent(after: Self.maxMisses, at: now), detectAgain(at: now, &effects) { return }
      if sending == nil { return ask(owing: min(poll.owed, 2), at: now, &effects) }
      poll = Poll(byte: poll.byte, wish: poll.wish, sent: now, owed: poll.owed)
      state = .asking(poll)
    case .attending(let until, owesAnswer: false) where now >= until:
      missed(at: now, &effects)
      if isSilent(after: Self.maxMissesDocumented, at: now), detectAgain(at: now, &effects) { return }
      state = .attending(until: now &+ Self.boardTimeout, owesAnswer: false)
    default: break
    }
  }

  mutating func missed(at now: Instant, _ effects: inout Effects) {
    counters.missed &+= 1
    misses += 1
    flush(&effects)
    publishCounters(at: now, &effects)
  }

  func isSilent(after most: Int, at now: Instant) -> Bool { misses >= most || misses > 1 && isGarbled(at: now) }
}
