// What the machine does when its link comes, takes what was sent, and goes: a new link knows nothing of the last, and off
// is the first word on each and the last one of a daemon that stops.

extension ELCommMachine {
  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    forgetDialogue(.notConnected("the link was opened again"), &effects)
    (cameUpAt, lastSpoke) = (now, .min)
    withdraw("the board has not spoken yet", &effects)
    switch settings.dialect {
    case nil:
      guess = dialect
      drain(at: now)
      turn(to: .detecting, &effects)
    case .asBuilt:
      turn(to: .detecting, &effects)
      ask(owing: 0, at: now, &effects)
    case .documented:
      turn(to: .detecting, &effects)
      state = .attending(until: now &+ Self.boardTimeout, owesAnswer: false)
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
    (offsHeard, misses, isProbeOpen, message) = (0, 0, false, nil)
    counters.badSince = decoder.badRuns
    (counters.mute, counters.inSecond, counters.isFlooded) = (0, 0, false)
  }

  mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard let sending, sending.id == id else { return }
    self.sending = nil
    if case .stopping(left: 0, _) = state { return finish(&effects) }
    // A write that failed is a byte that is not answered: it is counted there.
    unsent = failure
    if let failure { return effects.append(.note("not sent: \(failure)")) }
    switch state {
    case .probing(var probe):
      probe.sent = now
      state = .probing(probe)
    case .attending:
      guard let wish = sending.wish else { return }
      buzzer.heard(wish, at: now, &effects)
      publishBuzzer(&effects)
    default: break
    }
  }

  /// A board that prints hears nothing: unless it is known to be silent, off is said twice.
  mutating func stop(at now: Instant, _ effects: inout Effects) {
    keeping.hurry(&effects)
    guard isUp else { return effects.append(.stopped) }
    let isSilent = buzzer.known == false && !buzzer.isOn && (dialect == .documented || offsHeard >= Self.offsNeeded)
    buzzer.reset(.notConnected("the link is being closed"), &effects)
    state = .stopping(left: isSilent ? 1 : 2, due: now)
  }

  mutating func sayLastWord(left: Int, at now: Instant, _ effects: inout Effects) {
    send(off, wish: nil, at: now, &effects)
    state = .stopping(left: left, due: now &+ Self.offPause)
  }

  /// For as long as the buzzer may sound, it is switched off should the daemon die: the board knows no limit.
  mutating func leaveWill(_ effects: inout Effects) {
    let isWanted = isUp && (buzzer.isOn || hasWill && !(buzzer.isHeard && buzzer.known == false))
    guard isWanted != hasWill else { return }
    hasWill = isWanted
    let will = Will(dead: [Will.Message(off), Will.Message(off, after: Self.offPause)], frozen: [])
    effects.append(.will(.main, isWanted ? will : nil))
  }

  /// What switches the buzzer off.
  var off: [UInt8] { dialect == .documented ? settings.off : [ELCommControl.off] }

  private mutating func finish(_ effects: inout Effects) {
    state = .down("the link is being closed")
    effects.append(.stopped)
  }
}
