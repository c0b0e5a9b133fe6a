// What the machine does when its link comes, takes what was sent, and goes: a new link knows nothing of the last, and off
// is the first word on each and the last one of a daemon that stops.

extension ELCommMachine {
  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    forgetDialogue(.notConnected("the link was opened again"), &effects)
    (cameUpAt, lastSpoke) = (now, .min)
    withdraw("the board has not spoken yet", &effects)
    switch settings.dialect {
    case nil:
      state = .listening(until: now &+ Self.detection)
      turn(to: .detecting, &effects)
    case .asBuilt:
      turn(to: .detecting, &effects)
      ask(owing: 0, at: now, &effects)
    case .documented:
      turn(to: .detecting, &effects)
      state = .attending(until: now &+ Self.boardPatience, owesAnswer: false)
    }
  }

  mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    if case .stopping = state { effects.append(.stopped) }
    forgetDialogue(.notConnected(reason), &effects)
    state = .down(reason)
    turn(to: .waiting, &effects)
  }

  private mutating func forgetDialogue(_ error: CommandError, _ effects: inout Effects) {
    buzzer.reset(error, &effects)
    decoder.reset()
    timing.forget()
    (sending, unsent) = (nil, nil)
    (offsHeard, misses, unanswered, unasked, message) = (0, 0, 0, 0, nil)
    counters.badSince = decoder.badRuns
    (counters.mute, counters.inSecond, counters.isFlooded) = (0, 0, false)
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard let sending, sending.id == id else { return }
    self.sending = nil
    if case .stopping(lastWord: id) = state { return finish(&effects) }
    // A write that failed is a byte that is not answered: it is counted there.
    unsent = failure
    if let failure { return effects.append(.note("not sent: \(failure)")) }
    guard case .attending = state, let wish = sending.wish else { return }
    buzzer.heard(wish, at: now, &effects)
    publishBuzzer(&effects)
  }

  mutating func stop(_ effects: inout Effects) {
    keeping.hurry(&effects)
    guard isUp else { return effects.append(.stopped) }
    buzzer.reset(.notConnected("the link is being closed"), &effects)
    state = .stopping(lastWord: nil)
  }

  mutating func sayLastWord(at now: Instant, _ effects: inout Effects) {
    send(dialect == .documented ? settings.off : [ELCommControl.off], wish: nil, at: now, &effects)
    state = .stopping(lastWord: lastSendID)
  }

  private mutating func finish(_ effects: inout Effects) {
    state = .down("the link is being closed")
    effects.append(.stopped)
  }
}
