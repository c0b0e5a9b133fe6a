// Handling of link changes: the adapter's state is reset, queries end, and nothing stays due. Stored state is read once, at the start.

extension OBDMachine {
  mutating func restore(_ kept: [String: [UInt8]], _ effects: inout Effects) {
    values.publish(status: .waiting, &effects)
    withoutExtended = kept[Self.withoutExtendedKey].map { String(decoding: $0, as: UTF8.self) }
    keptTiming = String(decoding: kept["timing"] ?? [], as: UTF8.self)
    if let bytes = kept["request"], let known = RecordRequest(rawValue: String(decoding: bytes, as: UTF8.self)),
      let place = attempts.firstIndex(where: { $0.request == known })
    {
      storedRequest = known
      begin(place)
    }
    if let bytes = kept["controllers"], choice == .auto || choice == .ice, let found = Discovery(kept: bytes), recognise(found, &effects) {
      storedControllers = found
      // An electric car whose battery slept before may respond now: its request is tried first. Known ones use this protocol.
      begin(choice == .auto && found.bus == .can ? attempts.firstIndex { $0.request == storedRequest } ?? 0 : place(of: found) ?? 0)
    }
    line.restore(kept[LineSpeed.key])
    clearings = kept[Clearing.key] ?? []
    for counter in [Signal.polls, .missed, .timeouts, .badReplies] { values.publish(counter, .int(0), &effects) }
  }

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    if let baud = line.lineCameUp(at: baud) { effects.append(.setBaud(.main, baud)) }
    endTuning(.notConnected("link reopened"), &effects)
    failQueries(.notConnected("link reopened"), &effects)
    dialogue.reset()
    (traits, unanswered) = (AdapterTraits(), UnansweredCommands())
    errors = ErrorCounters()
    failedSetups = 0
    (isProbing, mark, hasChecked, hasHeededEcho) = (false, nil, false, false)
    timings.isPagePatient = false
    care?.begin()
    values.forgetScales()
    (reader, missingChecks) = (CANReader(), 0)
    begin(attempt)
    state = .settingUp(step: 0)
    values.publish(status: .starting, &effects)
  }

  mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    // Keep the reason why the link was reset; after a broken link the earlier fault no longer applies.
    if !isDown { values.publish(fault: nil, &effects) }
    if reasonDown != reason { values.publish(status: .waiting, &effects) }
    letGo(reason, &effects)
  }

  /// Resets the link.
  mutating func giveUp(_ reason: String, at now: Instant, _ effects: inout Effects) {
    if triesNextSpeed(at: now, &effects) { return }
    let reason = line.message ?? reason
    values.publish(fault: reason, &effects)
    values.publish(status: .degraded, &effects)
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

  /// Resets measurements and published absences.
  mutating func forgetMeasurements() {
    timing.forget()
    values.forgetAbsences()
  }
}
