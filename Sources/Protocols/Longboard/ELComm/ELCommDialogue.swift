// The dialogue: when the machine sends, and how it handles a response or a timeout. A poll that timed out may still get a response, so
// the next one waits for it as well, to keep at most two in the board's buffer. If the dialect is not configured, ELCommDetection
// finds it first, and again after a silence.
// Source: control bytes from ProjectTORQ.ino; 66 is the app's own constant, which no board takes as a buzzer command.

/// The control bytes of a board as built; any other byte leaves the buzzer unchanged.
enum ELCommControl {
  static let on: UInt8 = 55
  static let off: UInt8 = 45
  static let neutral: UInt8 = 66
}

extension ELCommMachine {
  /// The consecutive timeouts after which the board is silent: about two seconds.
  private static let maxMisses = 5
  private static let maxMissesDocumented = 2
  /// Twice is certain.
  static let offsNeeded = 2
  /// Longer than any pass of the board: of two bytes with this distance at least one is read.
  static let offPause: Nanoseconds = 200 * .millisecond

  // MARK: As built

  /// Sends the next byte. The first one on a link is off, whatever is requested.
  mutating func ask(owing owed: Int, at now: Instant, _ effects: inout Effects) {
    decoder.close()
    publishExtra(&effects)
    let isFirst = lastSpoke == .min
    let byte =
      isFirst ? ELCommControl.off : buzzer.isOn ? ELCommControl.on : offsHeard < Self.offsNeeded ? ELCommControl.off : ELCommControl.neutral
    // The first off does not confirm on.
    let wish = byte == ELCommControl.off && buzzer.isOn ? -1 : buzzer.wish
    if byte == ELCommControl.on { offsHeard = 0 }
    send([byte], wish: wish, at: now, &effects)
    state = .asking(Poll(byte: byte, wish: wish, sent: now, owed: owed + 1))
  }

  private mutating func answered(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    var poll = poll
    // The response to an earlier byte has no valid round trip.
    if poll.owed == 1, !poll.wasAnswered { timing.add(answered: now, roundTrip: now &- poll.sent, lateness: nil) }
    poll.owed -= 1
    poll.wasAnswered = true
    guard poll.owed <= 0 else { return state = .asking(poll) }
    settle(poll, at: now, &effects)
  }

  /// The board has sent all expected responses.
  private mutating func settle(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    if poll.byte == ELCommControl.off { offsHeard = min(offsHeard + 1, Self.offsNeeded) }
    buzzer.heard(poll.wish, at: now, &effects)
    state = .resting(asked: poll.sent)
  }

  // MARK: As documented

  mutating func answer(at now: Instant, _ effects: inout Effects) {
    // The first response on a link is off, whatever is requested.
    let isFirst = lastSpoke == .min
    let isOn = buzzer.isOn && !isFirst
    send(isOn ? settings.on : settings.off, wish: isOn == buzzer.isOn ? buzzer.wish : -1, at: now, &effects)
    state = .attending(until: now &+ Self.boardTimeout, owesAnswer: false)
  }

  // MARK: Messages and timeouts

  /// A complete message has arrived.
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

  /// Handles timeouts.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    buzzer.expire(at: now, &effects)
    if decoder.isOpen, now >= lastByteAt &+ Self.closing {
      decoder.close()
      publishExtra(&effects)
    }
    if sending != nil, now >= timeout, isUp {
      sending = nil
      let reason = "write timeout"
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
