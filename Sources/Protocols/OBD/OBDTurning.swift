// How the adapter is turned: for each question it is set to a bus, to whom it asks and hears, and to how long it waits. A bus or a header
// that it refuses stops what is asked there; where it stands after anything else than its OK nobody knows.

extension OBDMachine {
  /// A refused setting will be refused again; a person may change the adapter meanwhile.
  private static let slowRetry: Nanoseconds = 60 * .second
  static let noCAN = "a header is a CAN identifier, and the vehicle has no CAN bus"

  /// The way to another target.
  struct Turn {
    let aim: Aim
    let steps: [Aim.Step]
    var position = 0
    let began: Instant

    /// The step behind this one does the same in another way.
    var hasOtherWay: Bool {
      guard position + 1 < steps.count, case .instead = steps[position + 1] else { return false }
      return true
    }

    /// The command that is due, carriage return included.
    var command: [UInt8] { position < steps.count ? steps[position].bytes + [carriageReturn] : [] }
  }

  /// How the adapter is set for the request that is polled.
  var home: Aim {
    let timing = timing(of: request.target, isPatient: timings.isPagePatient, asksAll: request.isDiscovery)
    return Aim(bus: bus.carrying(request.target), target: request.target, timing: timing)
  }

  /// What is tuned is tuned to the controller that is polled. On CAN all controllers are heard out who are asked what they have.
  private func timing(of target: Target, isPatient: Bool, asksAll: Bool) -> ReplyTiming {
    if isPatient { return .patient }
    if asksAll, bus.isCAN { return .thorough }
    return target == request.target && target.reply != nil ? timings.usual : .initial
  }

  /// How it is set for a question of the timetable.
  func aim(for inquiry: Inquiry) -> Aim {
    let timing = timing(of: inquiry.target, isPatient: inquiry.isPatient, asksAll: inquiry.isCheck)
    return Aim(bus: bus.carrying(inquiry.target), target: inquiry.target, timing: timing)
  }

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
    var command: String { String(decoding: turn.command.dropLast(), as: UTF8.self) }
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
      complain("the adapter rejected \(command): reinitialising it", &effects)
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
      for index in timetable.refuse(turn.aim.target, "the adapter does not support \(command)") {
        withdraw(index, "the adapter does not support \(command)", &effects)
      }
      aim?.target = nil
      state = .polling
    } else if aim == nil {
      rest(
        until: now &+ Self.slowRetry, "the adapter does not support \(command) and cannot be set up safely; use another adapter", &effects)
    } else {
      complain("the adapter rejected \(command): reinitialising it", &effects)
      setUpAgain(at: now, &effects)
    }
  }
}
