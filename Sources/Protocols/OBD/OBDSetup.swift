// Initialisation of the adapter and its failures: missing commands of a clone cost single features; silence and unreadable replies reset
// the link after three attempts.

extension OBDMachine {
  static let silence = "the adapter does not respond; check its power"
  static let nonsense = "the adapter's replies are unreadable; check baud rate and wiring"
  private static let sleepTakes: Nanoseconds = 3 * .second

  /// Everything from the reset on, after a space that wakes a sleeping adapter and stops a busy one.
  mutating func setUpAgain(at now: Instant, _ effects: inout Effects) {
    failCurrentQuery(.notConnected("the adapter is being reinitialised"), &effects)
    endTuning(.notConnected("the adapter is being reinitialised"), &effects)
    traits = AdapterTraits(unanswered)
    addressing = nil
    errors.timeouts = 0
    errors.unusable = 0
    forgetMeasurements()
    state = .settingUp(step: 0)
    if values.status != .degraded, !isProbing { values.publish(status: .starting, &effects) }
    resynchronise(at: now, &effects)
  }

  /// The adapter has lost its settings, or will.
  mutating func lostSettings(_ status: ELMStatus, at now: Instant, _ effects: inout Effects) {
    values.publish(fault: status.message, &effects)
    if status.demand == .wake {
      rest(until: now &+ Self.sleepTakes, status.message, &effects)
    } else {
      setUpAgain(at: now, &effects)
    }
  }

  mutating func rest(until: Instant, _ reason: String, _ effects: inout Effects) {
    values.publish(fault: reason, &effects)
    values.publish(status: .degraded, &effects)
    failQueries(.notConnected(reason), &effects)
    state = .resting(until: until, reason)
  }

  mutating func setupReplied(_ step: SetupStep, at now: Instant, _ effects: inout Effects) {
    switch SetupAnswer(to: step, dialogue.reply[dialogue.body...], &traits) {
    case .done: if step == .reset { speedAnswered(&effects) }
    case .unknownCommand:
      traits.lacks(step)
      if let loss = step.loss { effects.append(.note(loss)) }
    case .nonsense:
      values.countBadReply(dialogue.reply, &effects)
      return setupFailed(Self.nonsense, isSilent: false, at: now, &effects)
    }
    let begun = (SetupStep.allCases.firstIndex(of: step) ?? 0) + 1
    if let next = SetupStep.allCases.indices.first(where: { $0 >= begun && !traits.missing.contains(SetupStep.allCases[$0]) }) {
      state = .settingUp(step: next)
    } else {
      setupFinished(at: now, &effects)
    }
  }

  private mutating func setupFinished(at now: Instant, _ effects: inout Effects) {
    if let name = traits.name { values.publish(.adapter, .string(name), &effects) }
    if pace.period == 0 { for signal in [Signal.lateness, .latenessP99] { values.withdraw(signal, "polling is back to back", &effects) } }
    addressing = nil
    recallTiming()
    if withoutExtended == traits.name { traits.takesNoHeader() }
    requestQueue.begin()
    // The lost settings may be due to a loose connector.
    mark = nil
    if !traits.hasVoltage { values.withdraw(.adapterVoltage, "the adapter does not report it", &effects) }
    dialogue.isInStep()
    pace.begin(at: now)
    // A paused vehicle is not polled more than before.
    state = isProbing ? .backingOff(Pause(until: now)) : .polling
  }

  mutating func setupFailed(_ reason: String, isSilent: Bool, at now: Instant, _ effects: inout Effects) {
    failedSetups += 1
    if failedSetups >= (isSilent && line.isGuess ? 1 : Self.setupTries) { return giveUp(reason, at: now, &effects) }
    // The adapter may have taken bytes at another speed for the beginning of this command.
    if line.isGuess { return setUpAgain(at: now, &effects) }
    // After unreadable replies the rest of a start may follow, so wait; a timeout has waited already.
    if !isSilent { return rest(until: now &+ .second, reason, &effects) }
    // If all speeds have failed before, keep that message.
    if values.fault == nil || !line.isOurs { values.publish(fault: reason, &effects) }
    setUpAgain(at: now, &effects)
  }
}
