// What the machine does when its link comes and goes: everything it knew of the adapter is forgotten, questions end,
// and nothing stays due. What the disk knows is read once, at the start.

extension OBDMachine {
  mutating func restore(_ kept: [String: [UInt8]], _ effects: inout Effects) {
    say(.waiting, &effects)
    withoutExtended = kept[Self.withoutExtendedKey].map { String(decoding: $0, as: UTF8.self) }
    keptTiming = String(decoding: kept["timing"] ?? [], as: UTF8.self)
    if let bytes = kept["request"], let known = PageRequest(rawValue: String(decoding: bytes, as: UTF8.self)),
      let place = attempts.firstIndex(where: { $0.request == known })
    {
      storedRequest = known
      begin(place)
    }
    if let bytes = kept["controllers"], choice == .auto || choice == .ice, let found = Discovery(kept: bytes), recognise(found, &effects) {
      storedControllers = found
      // An electric car whose battery slept when it was asked may be behind it: its page is tried first. Those that we know have this bus.
      begin(choice == .auto && found.bus == .can ? attempts.firstIndex { $0.request == storedRequest } ?? 0 : place(of: found) ?? 0)
    }
    line.restore(kept[LineSpeed.key])
    clearings = kept[Clearing.key] ?? []
    for counter in [Signal.polls, .missed, .timeouts, .badReplies] { publish(counter, .int(0), &effects) }
  }

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    if let baud = line.lineCameUp(at: baud) { effects.append(.setBaud(.main, baud)) }
    endTuning(.notConnected("link reopened"), &effects)
    failQueries(.notConnected("link reopened"), &effects)
    dialogue.reset()
    (traits, unanswered) = (AdapterTraits(), Unanswered())
    streaks = Streaks()
    failedSetups = 0
    (isProbing, mark, hasChecked, hasHeededEcho) = (false, nil, false, false)
    timings.isPagePatient = false
    care?.begin()
    scales.forget()
    (reader, missingChecks) = (CANReader(), 0)
    begin(attempt)
    state = .settingUp(step: 0)
    say(.starting, &effects)
  }

  mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    // Why we gave the link up stays to be read; what was wrong behind a link that broke is not known any more.
    if !isDown { complain(nil, &effects) }
    if reasonDown != reason { say(.waiting, &effects) }
    letGo(reason, &effects)
  }

  /// The link is of no use as it is.
  mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if triesNextSpeed(at: now, &effects) { return }
    let reason = line.words ?? reason
    complain(reason, &effects)
    say(.degraded, &effects)
    letGo(reason, &effects)
    effects.append(.resetLink(.main, reason: reason))
  }

  private mutating func letGo(_ reason: String, _ effects: inout Effects) {
    failQueries(.notConnected(reason), &effects)
    endTuning(.notConnected(reason), &effects)
    state = .down(reason)
    forgetMeasurements()
    dialogue.reset()
  }

  /// Nothing that was measured or said counts for what comes next.
  mutating func forgetMeasurements() {
    timing.forget()
    for index in said.indices { said[index] = .none }
  }
}
