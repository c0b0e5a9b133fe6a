// The device's state and fault, and the shutdown sequence.

extension VESCMachine {
  /// The daemon stops: motion is stopped first, if there is a link.
  mutating func stop(at now: Instant, _ effects: inout Effects) {
    isEnding = true
    failWishes(.notConnected("the link is being closed"), &effects)
    for id in limits.pending { effects.append(.complete(id, .failure(.notConnected("the link is being closed")))) }
    limits.pending.removeAll()
    motion.revoke("the link is being closed", at: now, &publisher, &effects)
    odometer.store(&effects)
  }

  mutating func end(_ effects: inout Effects) {
    isEnding = false
    motion.shutDown()
    sending = nil
    state = .down("the link is being closed")
    effects.append(.stopped)
  }

  /// Publishes changes of the state and the fault.
  mutating func report(_ effects: inout Effects) {
    let word = word
    if status != word.rawValue {
      status = word.rawValue
      effects.append(.status(word.rawValue))
    }
    let isUp = if case .down = state { false } else { true }
    motion.updateLastWill(isUp: isUp, &effects)
    let message = silence ?? modeTrouble ?? telemetry.fault
    if fault != message {
      fault = message
      effects.append(.fault(message))
    }
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

  /// The states of the kind.
  enum StatusWord: String {
    /// There is no link.
    case waiting
    /// The VESC has not responded yet.
    case starting
    /// The VESC responds.
    case polling
    /// The VESC responds, and is driven.
    case driving
    /// The VESC does not respond.
    case silent
    /// The data is invalid, or the VESC does not execute its commands.
    case degraded
  }
}
