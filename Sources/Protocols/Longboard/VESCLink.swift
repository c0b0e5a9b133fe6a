// What the machine does when its link comes and goes, and what it knows from earlier runs.

extension VESCMachine {
  mutating func restore(_ kept: [String: [UInt8]], _ effects: inout Effects) {
    for counter in [VESCSignal.polls, .missed, .timeouts, .badFrames] { publish(counter, .int(0), &effects) }
    limits.memory = kept["limits"].flatMap { VESCLimitsMemory(stored: $0) }
    let name = String(decoding: (kept["mode"] ?? []).prefix(64), as: UTF8.self)
    // A mode that is not in the configuration any more is not missed: the VESC gets its own limits back.
    limits.chosen = name.isEmpty ? nil : options.modes.contains { $0.name == name } ? name : VESCMode.full
    restoreWay(kept["odometer"], &effects)
    withdrawTargets(&effects)
    sayMode(&effects)
  }

  mutating func linkCameUp(at now: Instant, _ effects: inout Effects) {
    if case .down = state {} else { linkWentDown("the link was opened again", at: now, &effects) }
    reader.reset()
    talk = VESCConversation()
    sending = nil
    silence = nil
    forgetWhatWasSaid()
    motion.linkCameUp(at: now)
    withdrawTargets(&effects)
    sayMode(&effects)
    pace.begin(at: now)
    state = .ready
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if case .down = state {} else { silence = nil }
    drop(reason, at: now, &effects)
  }

  /// The link is of no use as it is.
  mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    silence = reason
    drop(reason, at: now, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func drop(_ reason: String, at now: Instant, _ effects: inout Effects) {
    sending = nil
    if motion.isHeld { loseLease(reason, at: now, &effects) }
    // What could not be said any more is the first thing to say when the link is back.
    motion.linkWentDown(at: now)
    failWishes(.notConnected(reason), &effects)
    forgetBoard()
    modeTrouble = nil
    storeWay(&effects)
    forgetWhatWasSaid()
    state = .down(reason)
  }
}
