// Link handling, and the restored state.

extension VESCMachine {
  mutating func restore(_ kept: [String: [UInt8]], _ effects: inout Effects) {
    for counter in [VESCSignal.polls, .missed, .timeouts, .badFrames] { publisher.publish(counter, .int(0), &effects) }
    limits.memory = kept["limits"].flatMap { VESCLimitsMemory(stored: $0) }
    let name = String(decoding: (kept["mode"] ?? []).prefix(64), as: UTF8.self)
    // If a mode was removed from the configuration, the VESC gets its own limits back.
    limits.chosen = name.isEmpty ? nil : options.modes.contains { $0.name == name } ? name : VESCMode.full
    odometer.restore(kept, &publisher, &effects)
    motion.withdrawTargets(&publisher, &effects)
    sayMode(&effects)
  }

  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    if case .down = state {} else { linkWentDown("the link was reopened", at: now, &effects) }
    reader.reset()
    talk = VESCConversation()
    sending = nil
    silence = nil
    publisher.forget()
    motion.linkCameUp(at: now, &publisher, &effects)
    sayMode(&effects)
    pace.begin(at: now)
    state = .ready
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if case .down = state {} else { silence = nil }
    drop(reason, at: now, &effects)
  }

  /// The link cannot be used any more.
  mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    silence = reason
    drop(reason, at: now, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func drop(_ reason: String, at now: Instant, _ effects: inout Effects) {
    sending = nil
    motion.linkWentDown(reason, at: now, &publisher, &effects)
    failWishes(.notConnected(reason), &effects)
    forgetBoard()
    modeTrouble = nil
    odometer.store(&effects)
    publisher.forget()
    state = .down(reason)
  }
}
