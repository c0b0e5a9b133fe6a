// Retargeting of the adapter: protocol, header, filter and timeout for each request. A rejected protocol or header stops the requests that
// need it; after any other reply than OK the addressing is unknown.

extension OBDMachine {
  /// A rejected setting stays rejected unless the adapter is replaced.
  private static let slowRetry: Nanoseconds = 60 * .second
  static let noCAN = "a header is a CAN identifier, and the vehicle has no CAN bus"

  /// The retargeting in progress.
  struct Turn {
    let addressing: ECUAddressing
    let steps: [ECUAddressing.Step]
    var position = 0
    let began: Instant

    /// The next step is an alternative to this one.
    var hasOtherWay: Bool {
      guard position + 1 < steps.count, case .instead = steps[position + 1] else { return false }
      return true
    }

    /// The next command, carriage return included.
    var command: [UInt8] { position < steps.count ? steps[position].bytes + [carriageReturn] : [] }
  }

  /// The addressing of the fast request.
  var home: ECUAddressing {
    let timing = timing(of: request.target, isPatient: timings.isPagePatient, asksAll: request.isDiscovery)
    return ECUAddressing(bus: bus.carrying(request.target), target: request.target, timing: timing)
  }

  /// Tuned timing is that of the polled ECU. On CAN discovery uses the full timeout, because all ECUs respond.
  private func timing(of target: Target, isPatient: Bool, asksAll: Bool) -> ReplyTiming {
    if isPatient { return .patient }
    if asksAll, bus.isCAN { return .thorough }
    return target == request.target && target.reply != nil ? timings.usual : .initial
  }

  /// The addressing of another request.
  func addressing(for inquiry: PollRequest) -> ECUAddressing {
    let timing = timing(of: inquiry.target, isPatient: inquiry.isPatient, asksAll: inquiry.isCheck)
    return ECUAddressing(bus: bus.carrying(inquiry.target), target: inquiry.target, timing: timing)
  }

  /// Retargets the adapter. For functional requests before CAN it must have no header set: it is reinitialised.
  mutating func turn(to there: ECUAddressing, at now: Instant, _ effects: inout Effects) {
    let target = there.target ?? .unaddressed
    if target.request != nil, !bus.isCAN, bus != .search {
      for request in requestQueue.refuse(target, Self.noCAN) { values.withdraw(request, Self.noCAN, &effects) }
      return
    }
    if target.request == nil, let addressing, addressing.target != .unaddressed { return setUpAgain(at: now, &effects) }
    let turn = Turn(addressing: there, steps: there.steps(from: addressing, traits), began: now)
    if turn.steps.isEmpty { return addressing = turn.addressing }
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
      values.countBadReply(dialogue.reply, &effects)
      if addressing == nil { return setupFailed(Self.nonsense, isSilent: false, at: now, &effects) }
      values.publish(fault: "the adapter rejected \(command): reinitialising it", &effects)
      return setUpAgain(at: now, &effects)
    }
    if turn.position < turn.steps.count { return state = .turning(turn) }
    // From a fresh setup more steps are needed.
    if addressing != nil { requestQueue.retargeted(took: now &- turn.began) }
    addressing = turn.addressing
    failedSetups = 0
    state = .polling
  }

  /// The adapter cannot address this target. Without the fast request nothing is left; other requests are rejected.
  private mutating func turnRefused(_ turn: Turn, _ command: String, at now: Instant, _ effects: inout Effects) {
    if turn.addressing.target != request.target {
      for request in requestQueue.refuse(turn.addressing.target, "the adapter does not support \(command)") {
        values.withdraw(request, "the adapter does not support \(command)", &effects)
      }
      addressing?.target = nil
      state = .polling
    } else if addressing == nil {
      rest(
        until: now &+ Self.slowRetry, "the adapter does not support \(command) and cannot be set up safely; use another adapter", &effects)
    } else {
      values.publish(fault: "the adapter rejected \(command): reinitialising it", &effects)
      setUpAgain(at: now, &effects)
    }
  }
}
