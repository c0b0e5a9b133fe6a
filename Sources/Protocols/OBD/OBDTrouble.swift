// Handling of dialogue failures: an unusable reply, a timeout, an overflow, or unexpected text. None becomes a value; they are counted, and
// the last one is published.

extension OBDMachine {
  private static let unusableSuspicion = 4
  private static let unusableLimit = 10
  private static let timeoutLimit = 3

  /// Handles an unusable reply to a poll.
  mutating func unusable(_ reason: String, resynchronising: Bool, at now: Instant, _ effects: inout Effects) {
    values.countBadReply(dialogue.reply, &effects)
    spoilt(reason, resynchronising: resynchronising, at: now, &effects)
  }

  private mutating func spoilt(_ reason: String, resynchronising: Bool, at now: Instant, _ effects: inout Effects) {
    errors.unusable += 1
    publishCounters(at: now, &effects)
    if errors.unusable >= Self.unusableSuspicion {
      values.publish(fault: "the adapter's replies are unusable (\(reason)): reinitialising it", &effects)
      values.publish(status: .degraded, &effects)
    }
    if errors.unusable >= Self.unusableLimit {
      setUpAgain(at: now, &effects)
    } else if resynchronising {
      resynchronise(at: now, &effects)
    }
  }

  /// Handles unexpected text: resynchronise before the next command.
  mutating func strayTextCame(at now: Instant, _ effects: inout Effects) {
    values.countBadReply(dialogue.strayText, &effects)
    switch state {
    case .polling, .backingOff: spoilt("unexpected text", resynchronising: true, at: now, &effects)
    default: resynchronise(at: now, &effects)
    }
  }

  /// Handles an overflow without a prompt.
  mutating func overflowed(at now: Instant, _ effects: inout Effects) {
    values.countBadReply(dialogue.reply, &effects)
    switch state {
    case .settingUp: setupFailed(Self.nonsense, isSilent: false, at: now, &effects)
    case .querying(let query, let pause):
      complete(query, .failure(.refused(code: "bad-reply", "\(Self.nonsense)")), &effects)
      resynchronise(at: now, &effects)
      putBack(query, pause, at: now, &effects)
    case .asking(let poll):
      dropCount(poll)
      pace.failed(at: now)
      state = .polling
      spoilt("no prompt in \(ELMDialogue.limit) bytes", resynchronising: true, at: now, &effects)
    case .inquiring(let index, let sent):
      inquiryMissed(index, sent: sent, at: now)
      spoilt("no prompt in \(ELMDialogue.limit) bytes", resynchronising: true, at: now, &effects)
    case .turning, .namingBus: setUpAgain(at: now, &effects)
    case .measuring:
      voltageMissed(at: now)
      spoilt("no prompt in \(ELMDialogue.limit) bytes", resynchronising: true, at: now, &effects)
    case .lulling(let until): state = .asleep(until: until)
    case .down, .resting, .polling, .backingOff, .asleep: break
    }
  }

  /// Handles a command without a reply in time.
  mutating func timedOut(at now: Instant, _ effects: inout Effects) {
    values.countTimeout(&effects)
    if unanswered.add(dialogue.command) {
      // Learning that a command is unsupported does not count as a failure.
      failedSetups = 0
      let command = String(decoding: dialogue.command.dropLast(), as: UTF8.self)
      effects.append(.note("the adapter repeatedly does not respond to \(command): the command is no longer used"))
    }
    switch state {
    case .settingUp: setupFailed(Self.silence, isSilent: true, at: now, &effects)
    case .asking(let poll):
      dropCount(poll)
      pace.failed(at: now)
      state = .polling
      countTimeout(at: now, &effects)
    case .querying(let query, let pause):
      if case .prepare? = query.step {
        let command = String(decoding: query.command.dropLast(), as: UTF8.self)
        complete(query, .failure(.refused(code: "adapter-silent", "the adapter does not respond to \(command); try again")), &effects)
      } else {
        complete(query, .failure(.timeout(milliseconds: Int(Self.timeout / .millisecond))), &effects)
      }
      if query.isRestoring { return setUpAgain(at: now, &effects) }
      putBack(query, pause, at: now, &effects)
      countTimeout(at: now, &effects)
    case .inquiring(let index, let sent):
      inquiryMissed(index, sent: sent, at: now)
      if isExtended { return extendedTimedOut(index, at: now, &effects) }
      countTimeout(at: now, &effects)
    case .turning where addressing == nil, .namingBus: setupFailed(Self.silence, isSilent: true, at: now, &effects)
    // The addressing is unknown now.
    case .turning(let turn):
      values.publish(
        fault: "the adapter does not respond to \(String(decoding: turn.command.dropLast(), as: UTF8.self)): reinitialising it", &effects)
      setUpAgain(at: now, &effects)
    case .measuring:
      voltageMissed(at: now)
      if unanswered.holds("ATRV") {
        traits.lacksVoltage()
        values.withdraw(.adapterVoltage, "the adapter does not report it", &effects)
      }
      countTimeout(at: now, &effects)
    case .lulling(let until): state = .asleep(until: until)
    case .down, .resting, .polling, .backingOff, .asleep: break
    }
  }

  private mutating func countTimeout(at now: Instant, _ effects: inout Effects) {
    errors.timeouts += 1
    values.publish(fault: Self.silence, &effects)
    values.publish(status: .degraded, &effects)
    publishCounters(at: now, &effects)
    if errors.timeouts >= Self.timeoutLimit {
      setUpAgain(at: now, &effects)
    } else {
      resynchronise(at: now, &effects)
    }
  }

  private mutating func dropCount(_ poll: Poll) {
    guard poll.isCounted else { return }
    count.drop()
    writePollBytes()
  }
}
