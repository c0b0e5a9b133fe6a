// Link handling: connection, accepted writes and disconnection. A new link starts without state; off is the first message on each link
// and the last one before shutdown.

extension ELCommMachine {
  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    forgetDialogue(.notConnected("the link was reopened"), &effects)
    (cameUpAt, lastSpoke) = (now, .min)
    withdraw("no message from the board yet", &effects)
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
    // A failed write has no response and is counted there.
    unsent = failure
    if let failure { return effects.append(.note("send failed: \(failure)")) }
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

  /// A board ignores input while it sends: unless it is known to be quiet, off is sent twice.
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

  /// While the buzzer may sound, a last-will frame switches it off if the daemon dies, because the board has no time limit.
  mutating func leaveWill(_ effects: inout Effects) {
    let isWanted = isUp && (buzzer.isOn || hasWill && !(buzzer.isHeard && buzzer.known == false))
    guard isWanted != hasWill else { return }
    hasWill = isWanted
    let will = LastWill(dead: [LastWill.Message(off), LastWill.Message(off, after: Self.offPause)], frozen: [])
    effects.append(.lastWill(.main, isWanted ? will : nil))
  }

  /// The bytes that switch the buzzer off.
  var off: [UInt8] { dialect == .documented ? settings.off : [ELCommControl.off] }

  private mutating func finish(_ effects: inout Effects) {
    state = .down("the link is being closed")
    effects.append(.stopped)
  }
}
