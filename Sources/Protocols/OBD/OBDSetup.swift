// How the machine makes the adapter ready and turns it to a vehicle, and what it does when that fails: a clone's missing commands cost
// features one by one, a refused bus or header stops, silence and nonsense lead back to the link after three tries.

extension OBDMachine {
  static let silence = "the adapter does not answer: check its power"
  static let nonsense = "the adapter's answers make no sense: check baud rate and wiring"
  /// A refused setting will be refused again; a person may change the adapter meanwhile.
  private static let slowRetry: Nanoseconds = 60 * .second
  static let noCAN = "the vehicle has no CAN bus, and a header is a CAN identifier"
  private static let sleepTakes: Nanoseconds = 3 * .second

  /// Everything from the reset on, behind a space that wakes a sleeping adapter and stops a busy one.
  mutating func setUpAgain(at now: Instant, _ effects: inout Effects) {
    failCurrentQuery(.notConnected("the adapter is set up again"), &effects)
    endTuning(.notConnected("the adapter is set up again"), &effects)
    traits = AdapterTraits()
    aim = nil
    streaks.timeouts = 0
    streaks.unusable = 0
    forgetMeasurements()
    state = .settingUp(step: 0)
    if status != StatusWord.degraded.rawValue, !isProbing { say(.starting, &effects) }
    resynchronise(at: now, &effects)
  }

  /// The adapter lost its settings, or will.
  mutating func lostSettings(_ status: ELMStatus, at now: Instant, _ effects: inout Effects) {
    complain(status.words, &effects)
    if status.demand == .wake {
      rest(until: now &+ Self.sleepTakes, status.words, &effects)
    } else {
      setUpAgain(at: now, &effects)
    }
  }

  mutating func rest(until: Instant, _ reason: String, _ effects: inout Effects) {
    complain(reason, &effects)
    say(.degraded, &effects)
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
      keepBadReply(dialogue.reply, &effects)
      return setupFailed(Self.nonsense, isSilent: false, at: now, &effects)
    }
    let next = (SetupStep.allCases.firstIndex(of: step) ?? 0) + 1
    if next < SetupStep.allCases.count {
      state = .settingUp(step: next)
    } else {
      setupFinished(at: now, &effects)
    }
  }

  private mutating func setupFinished(at now: Instant, _ effects: inout Effects) {
    if let name = traits.name { publish(.adapter, .string(name), &effects) }
    if pace.period == 0 { for signal in [Signal.lateness, .latenessP99] { withdraw(signal, "polls go back to back", &effects) } }
    aim = nil
    recallTiming()
    if withoutExtended == traits.name { traits.takesNoHeader() }
    timetable.begin()
    dialogue.isInStep()
    pace.begin(at: now)
    // One that is left alone is asked no more than before.
    state = isProbing ? .backingOff(Pause(until: now)) : .polling
  }

  // MARK: Turning

  /// Turns the adapter. Where it is to address everybody by itself it must not know any other way: it is set up again.
  mutating func turn(to there: Aim, at now: Instant, _ effects: inout Effects) {
    let target = there.target ?? .unaddressed
    if target.request != nil, !bus.isCAN, bus != .search {
      for index in timetable.refuse(target, Self.noCAN) { withdraw(index, Self.noCAN, &effects) }
      return
    }
    if target.request == nil, let aim, aim.target != .unaddressed { return setUpAgain(at: now, &effects) }
    let turn = Turn(aim: there, steps: there.steps(from: aim, traits), began: now)
    if turn.steps.isEmpty { return aim = turn.aim }
    state = .turning(turn)
    send(turn.command, at: now, &effects)
  }

  mutating func turnReplied(_ turn: Turn, at now: Instant, _ effects: inout Effects) {
    var turn = turn
    let command = String(decoding: turn.command.dropLast(), as: UTF8.self)
    switch isAcknowledged ? .done : SetupAnswer(dialogue.reply[dialogue.body...]) {
    case .done:
      turn.position += turn.hasOtherWay ? 2 : 1
    case .unknownCommand:
      if case .required = turn.steps[turn.position] { return turnRefused(turn, command, at: now, &effects) }
      if case .preferred = turn.steps[turn.position], !turn.hasOtherWay {
        traits.lacksFilter()
        effects.append(.note(AdapterTraits.filterLoss))
      }
      turn.position += 1
    case .nonsense:
      keepBadReply(dialogue.reply, &effects)
      if aim == nil { return setupFailed(Self.nonsense, isSilent: false, at: now, &effects) }
      complain("the adapter did not take \(command): it is set up again", &effects)
      return setUpAgain(at: now, &effects)
    }
    if turn.position < turn.steps.count { return state = .turning(turn) }
    // From just set up it takes more steps.
    if aim != nil { timetable.turned(took: now &- turn.began) }
    aim = turn.aim
    failedSetups = 0
    state = .polling
  }

  /// It does not know how to ask there. Where that is where the vehicle is polled nothing is left; others are not asked.
  private mutating func turnRefused(_ turn: Turn, _ command: String, at now: Instant, _ effects: inout Effects) {
    if turn.aim.target != request.target {
      for index in timetable.refuse(turn.aim.target, "the adapter does not know \(command)") {
        withdraw(index, "the adapter does not know \(command)", &effects)
      }
      aim?.target = nil
      state = .polling
    } else if aim == nil {
      rest(until: now &+ Self.slowRetry, "the adapter does not know \(command) and cannot be set up safely: use another adapter", &effects)
    } else {
      complain("the adapter did not take \(command): it is set up again", &effects)
      setUpAgain(at: now, &effects)
    }
  }

  mutating func setupFailed(_ reason: String, isSilent: Bool, at now: Instant, _ effects: inout Effects) {
    failedSetups += 1
    if failedSetups >= (isSilent && line.isGuess ? 1 : Self.setupTries) { return giveUp(reason, at: now, &effects) }
    // It may have taken what was said at another speed for the beginning of this command.
    if line.isGuess { return setUpAgain(at: now, &effects) }
    // Silence has taken its time; nonsense may be the rest of a start.
    if !isSilent { return rest(until: now &+ .second, reason, &effects) }
    // Where all speeds have failed before, that stays to be read.
    if fault == nil || !line.isOurs { complain(reason, &effects) }
    setUpAgain(at: now, &effects)
  }
}
