// What the machine says of itself: one word for what it is at, one sentence for what is wrong; and its last words.

extension VESCMachine {
  /// The daemon stops: what moves is stopped first, if there is a link for it.
  mutating func stop(at now: Instant, _ effects: inout Effects) {
    isEnding = true
    failWishes(.notConnected("the link is being closed"), &effects)
    for id in limits.pending { effects.append(.complete(id, .failure(.notConnected("the link is being closed")))) }
    limits.pending.removeAll()
    if motion.isHeld { loseLease("the link is being closed", at: now, &effects) }
    storeWay(&effects)
  }

  mutating func end(_ effects: inout Effects) {
    isEnding = false
    motion.giveUp()
    sending = nil
    state = .down("the link is being closed")
    effects.append(.stopped)
  }

  /// Says what the machine is at, and what is wrong, where that is news.
  mutating func report(_ effects: inout Effects) {
    let word = word
    if status != word.rawValue {
      status = word.rawValue
      effects.append(.status(word.rawValue))
    }
    leaveWill(&effects)
    let words = silence ?? modeTrouble ?? faultWords
    if fault != words {
      fault = words
      effects.append(.fault(words))
    }
  }

  /// For as long as somebody drives, or was just stopped, the motor is let go should the daemon die or freeze: the VESC's own
  /// timeout takes a second. A motor that turns for somebody else is none of ours.
  private mutating func leaveWill(_ effects: inout Effects) {
    var isWanted = motion.isHeld || motion.isStopping
    if case .down = state { isWanted = false }
    guard isWanted != hasWill else { return }
    hasWill = isWanted
    let stop = VESCSetPoint.none.frame(can: options.can)
    let words = (0..<VESCMotion.stopFrames).map { Will.Message(stop, after: $0 == 0 ? 0 : VESCMotion.stopInterval) }
    effects.append(.will(.main, isWanted ? Will(dead: words, frozen: words) : nil))
  }

  private var word: StatusWord {
    switch state {
    case .down: .waiting
    case .silent: talk.hearsNoise ? .degraded : .silent
    case .ready, .asking:
      silence != nil
        ? (talk.hearsNoise ? .degraded : .silent)
        : motion.isHeld ? .driving : !talk.isSettled ? .starting : modeTrouble != nil ? .degraded : .polling
    }
  }

  /// The kind's words for what it is doing.
  enum StatusWord: String {
    /// There is no link.
    case waiting
    /// The VESC has not answered yet.
    case starting
    /// The VESC answers.
    case polling
    /// The VESC answers, and somebody drives.
    case driving
    /// The VESC does not answer.
    case silent
    /// What comes is not what a VESC says, or it does not do what it was told.
    case degraded
  }
}
