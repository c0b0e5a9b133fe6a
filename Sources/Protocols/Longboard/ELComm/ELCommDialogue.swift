// The dialogue with the board: when to send, and how to handle a response or a timeout. An as-built board responds to each byte, and a poll
// is one byte. A poll that timed out may still get a response, so the next poll waits for both responses, and at most two bytes are in the
// board's buffer. A documented board sends first, and expects a response. Off is the first message on each link, and the last one before
// shutdown.
//
//   down ──▶ draining ◀─▶ probing ──▶ polling ◀─▶ idle       (as built)
//     │          ▲           └──────▶ listening              (as documented)
//     │          └── silent, if the dialect is not configured
//     └─ configured dialect: polling or listening directly; stopping from every state with a link

struct ELCommDialogue: Sendable {
  private enum State: Sendable {
    /// No link, for this reason.
    case down(String)
    /// The dialect is unknown. Nothing is sent until the board has been quiet until this time, so that a response to an earlier byte is not
    /// mistaken for a response to the probe.
    case draining(until: Instant)
    /// A probe of two characters is in flight; the number of responses identifies the dialect.
    case probing(ELCommDetection.Probe)
    /// A byte was sent to an as-built board, and its response is awaited.
    case polling(ELCommPoll)
    /// An as-built board has responded to the byte that was sent at `lastPoll`.
    case idle(lastPoll: Instant)
    /// A documented board must send its next message by this time. `mustRespond`: the board has sent a message, and the daemon must
    /// respond.
    case listening(until: Instant, mustRespond: Bool)
    /// Shutdown: the number of remaining off messages, and when the next one is due.
    case stopping(left: Int, due: Instant)
  }

  /// The consequences of an event for other components.
  struct Outcome: Sendable {
    /// The board has confirmed this buzzer change.
    fileprivate(set) var confirmed: Int?
    /// The detected dialect, to be stored.
    fileprivate(set) var detected: ELCommDialect?
    /// The link is being reset, for this reason.
    fileprivate(set) var lostLink: String?
  }

  /// The timeout for the response to a byte.
  private static let replyTimeout: Nanoseconds = 400 * .millisecond
  /// The maximum time between two messages of a documented board.
  private static let boardTimeout: Nanoseconds = .second
  /// The minimum interval between responses to a documented board, which may send its next message immediately.
  private static let minReplyInterval: Nanoseconds = 20 * .millisecond
  /// The number of confirmed off messages after which polls no longer repeat off.
  private static let minOffsConfirmed = 2
  /// The pause between two off messages: longer than any pass of the board's loop, so that the board reads at least one of them.
  static let offPause: Nanoseconds = 200 * .millisecond

  private let settings: ELCommSettings
  private var state = State.down("the link is not up yet")
  /// The detected or configured dialect. A detected dialect is stored as a hint for later links and restarts; a single probe then confirms
  /// it.
  private var dialect: ELCommDialect?
  private var detection = ELCommDetection()
  private(set) var receiver = ELCommReceiver()
  private(set) var writer = ELCommWriter()
  private var statistics: ELCommStatistics
  private var status = ELCommStatus()
  /// How often the board has confirmed that the buzzer is off, at most `minOffsConfirmed`; polls then no longer repeat off.
  private var offsConfirmed = 0
  private var misses = ELCommMisses()

  init(_ settings: ELCommSettings) {
    self.settings = settings
    dialect = settings.dialect
    statistics = ELCommStatistics(period: settings.period)
  }

  var isUp: Bool { if case .down = state { false } else { true } }

  /// Why no command can be sent to the board now.
  var unavailability: String? {
    switch state {
    case .down(let reason): reason
    case .stopping: "the link is being closed"
    case .draining, .probing, .polling, .idle, .listening: nil
    }
  }

  /// The bytes that switch the buzzer off.
  var off: [UInt8] { dialect == .documented ? settings.off : [ELCommControl.off] }

  /// When something is due; `target` is the requested state of the buzzer.
  func nextWake(_ target: ELCommBuzzer.Target) -> Instant? {
    let next: Instant?
    switch state {
    case .down: return nil
    case .stopping(let left, let due): return left > 0 && writer.isFree ? due : nil
    case .draining(let until): next = until
    case .probing(let probe): next = writer.deadline ?? probe.sent &+ ELCommDetection.probeTime
    case .polling(let poll): next = poll.sent &+ Self.replyTimeout
    case .idle(let lastPoll): next = writer.deadline ?? nextPoll(after: lastPoll, target)
    case .listening(let until, let mustRespond): next = mustRespond ? writer.deadline ?? nextResponse : until
    }
    return [next, receiver.nextWake].compactMap(\.self).min()
  }

  /// When the next byte may be sent: at the configured rate, or sooner if the buzzer changes.
  private func nextPoll(after lastPoll: Instant, _ target: ELCommBuzzer.Target) -> Instant {
    lastPoll &+ (target.isConfirmed ? settings.period : min(settings.period, ELCommSettings.minPeriod))
  }

  private var nextResponse: Instant { writer.isFirst ? .min : writer.lastSent &+ Self.minReplyInterval }

  // MARK: The link

  mutating func restore(_ hint: ELCommDialect?, _ effects: inout Effects) {
    dialect = settings.dialect ?? hint
    if let configured = settings.dialect {
      effects.publish(ELCommProperty.dialect.rawValue, .string(configured.rawValue))
    } else {
      effects.withdraw(ELCommProperty.dialect.rawValue, "not detected yet")
    }
    effects.withdraw(ELCommProperty.mode.rawValue, "not supported by ELComm")
    effects.withdraw(ELCommProperty.lastBadMessage.rawValue, "none so far")
    for counter in [ELCommProperty.messages, .missed, .badMessages] { effects.publish(counter.rawValue, .int(0)) }
    status.publish(&effects)
  }

  mutating func linkCameUp(_ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects) {
    reset()
    receiver.linkCameUp(at: now)
    writer.startOver()
    withdraw("no message from the board yet", &effects)
    status.set(.detecting, &effects)
    switch settings.dialect {
    case nil:
      detection.begin(hint: dialect, isProbeOpen: false)
      drain(at: now)
    case .asBuilt: sendPoll(pendingResponses: 0, target, at: now, &effects)
    case .documented: state = .listening(until: now &+ Self.boardTimeout, mustRespond: false)
    }
  }

  mutating func linkWentDown(_ reason: String, _ effects: inout Effects) {
    if case .stopping = state { effects.append(.stopped) }
    reset()
    state = .down(reason)
    status.set(.waiting, &effects)
  }

  private mutating func reset() {
    receiver.reset()
    statistics.resetTiming()
    writer.reset()
    offsConfirmed = 0
    misses.reset()
  }

  /// Begins the shutdown; returns false without a link. `isOff`: the board has confirmed that the buzzer is off. Off is sent twice, because
  /// a board ignores input while it sends, but only once if the buzzer is certainly off.
  mutating func stop(isOff: Bool, at now: Instant, _ effects: inout Effects) -> Bool {
    guard isUp else {
      effects.append(.stopped)
      return false
    }
    let isCertain = isOff && (dialect == .documented || offsConfirmed >= Self.minOffsConfirmed)
    state = .stopping(left: isCertain ? 1 : 2, due: now)
    return true
  }

  // MARK: Sending

  /// Sends what is due, if the link is free.
  mutating func advance(_ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects) {
    guard writer.isFree else { return }
    switch state {
    case .idle(let lastPoll) where now >= nextPoll(after: lastPoll, target): sendPoll(pendingResponses: 0, target, at: now, &effects)
    case .listening(_, mustRespond: true) where now >= nextResponse: respond(target, at: now, &effects)
    case .stopping(let left, let due) where left > 0 && now >= due:
      writer.send(off, at: now, &effects)
      state = .stopping(left: left - 1, due: now &+ Self.offPause)
    default: break
    }
  }

  /// Sends the next byte, which is off if it is the first one on a link. `pendingResponses`: how many responses to earlier bytes may still
  /// arrive.
  private mutating func sendPoll(pendingResponses: Int, _ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects) {
    receiver.close(&effects)
    let byte =
      writer.isFirst
      ? ELCommControl.off
      : target.isOn ? ELCommControl.on : offsConfirmed < Self.minOffsConfirmed ? ELCommControl.off : ELCommControl.neutral
    // The response to the first off does not confirm a requested on.
    let change = byte == ELCommControl.off && target.isOn ? -1 : target.change
    if byte == ELCommControl.on { offsConfirmed = 0 }
    writer.send([byte], at: now, &effects)
    state = .polling(ELCommPoll(byte: byte, change: change, sent: now, pendingResponses: pendingResponses + 1))
  }

  /// Responds to a documented board. The first response on a link is off.
  private mutating func respond(_ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects) {
    let isOn = target.isOn && !writer.isFirst
    writer.send(isOn ? settings.on : settings.off, change: isOn == target.isOn ? target.change : -1, at: now, &effects)
    state = .listening(until: now &+ Self.boardTimeout, mustRespond: false)
  }

  /// Sends two characters to detect the dialect: the number that means off to a documented board. Neither character means on to an as-built
  /// board.
  private mutating func probe(at now: Instant, _ effects: inout Effects) {
    writer.send(settings.probe, at: now, &effects)
    state = .probing(ELCommDetection.Probe(sent: now, badRuns: receiver.badRuns))
  }

  /// Handles the end of a write. Returns the buzzer change that was sent to a documented board, if any.
  mutating func writeEnded(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) -> Int? {
    guard let write = writer.end(id) else { return nil }
    if case .stopping(left: 0, _) = state {
      state = .down("the link is being closed")
      effects.append(.stopped)
      return nil
    }
    // A failed write gets no response, so it is counted as a timeout.
    writer.setFailure(failure)
    if let failure {
      effects.append(.note("send failed: \(failure)"))
      return nil
    }
    switch state {
    case .probing(var probe):
      probe.writeEnded(at: now)
      state = .probing(probe)
      return nil
    case .listening: return write.change
    default: return nil
    }
  }

  // MARK: Receiving

  /// Prepares for received bytes; returns false if they must be ignored.
  mutating func beginReceiving(at now: Instant) -> Bool {
    guard unavailability == nil else { return false }
    receiver.begin(at: now)
    return true
  }

  /// Handles one byte; returns the message that it completes, if any. The caller then calls `received`.
  mutating func decode(_ byte: UInt8, at now: Instant) -> ELCommMessage? { receiver.decode(byte, at: now) }

  /// Publishes the last message that the received bytes completed, if any. Called after all of these bytes were decoded.
  mutating func endReceiving(hasMessage: Bool, at now: Instant, _ effects: inout Effects) {
    receiver.end(hasMessage: hasMessage, at: now, &effects)
    guard hasMessage else { return }
    statistics.publish(messages: receiver.messages, withTimes: misses.isEmpty, at: now, &effects)
    status.set(receiver.condition, &effects)
  }

  /// Handles a complete message.
  mutating func received(_ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects) -> Outcome {
    misses.reset()
    switch state {
    case .down, .stopping, .idle: break
    case .probing(var probe):
      probe.messageReceived()
      state = .probing(probe)
    case .draining:
      if detection.countUnsolicited() { return setDialect(.documented, target, at: now, &effects) }
      state = .draining(until: now &+ ELCommDetection.quietTime)
    case .polling(var poll):
      if poll.hasUnambiguousResponse { statistics.responded(now &- poll.sent, at: now) }
      poll.responseReceived()
      if poll.isComplete { return pollCompleted(poll) }
      state = .polling(poll)
    case .listening(let until, let mustRespond):
      if !mustRespond, !writer.isFirst { statistics.responded(now &- writer.lastSent, at: now) }
      state = .listening(until: until, mustRespond: true)
    }
    return Outcome()
  }

  /// Ends a poll to which the board has sent all pending responses.
  private mutating func pollCompleted(_ poll: ELCommPoll) -> Outcome {
    if poll.byte == ELCommControl.off { offsConfirmed = min(offsConfirmed + 1, Self.minOffsConfirmed) }
    state = .idle(lastPoll: poll.sent)
    return Outcome(confirmed: poll.change)
  }

  // MARK: Timeouts

  mutating func expire(_ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects) -> Outcome {
    receiver.expire(at: now, &effects)
    if let deadline = writer.deadline, now >= deadline, isUp {
      let reason = "write timeout"
      effects.append(.resetLink(.main, reason: reason))
      linkWentDown(reason, &effects)
      return Outcome(lostLink: reason)
    }
    switch state {
    case .draining(let until) where now >= until && writer.isFree: probe(at: now, &effects)
    case .probing(let last) where writer.isFree && now >= last.sent &+ ELCommDetection.probeTime:
      return probeEnded(last, target, at: now, &effects)
    case .polling(let poll) where now >= poll.sent &+ Self.replyTimeout:
      if poll.wasAnswered { return pollCompleted(poll) }
      messageMissed(at: now, &effects)
      if isSilent(after: ELCommMisses.max, at: now), detectAgain(target, at: now, &effects) { break }
      if writer.isFree {
        sendPoll(pendingResponses: min(poll.pendingResponses, 2), target, at: now, &effects)
      } else {
        state = .polling(ELCommPoll(byte: poll.byte, change: poll.change, sent: now, pendingResponses: poll.pendingResponses))
      }
    case .listening(let until, mustRespond: false) where now >= until:
      messageMissed(at: now, &effects)
      if isSilent(after: ELCommMisses.maxDocumented, at: now), detectAgain(target, at: now, &effects) { break }
      state = .listening(until: now &+ Self.boardTimeout, mustRespond: false)
    default: break
    }
    return Outcome()
  }

  private mutating func messageMissed(at now: Instant, _ effects: inout Effects) {
    statistics.missedMessage()
    misses.add()
    receiver.flush(&effects)
    statistics.publish(messages: receiver.messages, withTimes: false, at: now, &effects)
  }

  private func isSilent(after maxMisses: Int, at now: Instant) -> Bool {
    misses.isSilent(after: maxMisses, isGarbled: receiver.isGarbled(at: now))
  }

  /// Withdraws the values of a board that has not responded for too long.
  private mutating func boardStoppedResponding(at now: Instant, _ effects: inout Effects) {
    let isGarbled = receiver.isGarbled(at: now)
    withdraw(
      status.boardStoppedResponding(isGarbled: isGarbled, writer.failure, isDocumented: settings.dialect == .documented, &effects), &effects
    )
    statistics.resetTiming()
  }

  private func withdraw(_ message: String, _ effects: inout Effects) {
    for property in ELCommProperty.live { effects.withdraw(property.rawValue, message) }
  }

  // MARK: Dialect detection

  /// Waits until the board is quiet.
  private mutating func drain(at now: Instant) {
    detection.drain()
    state = .draining(until: now &+ ELCommDetection.quietTime)
  }

  /// Evaluates a probe at the end of its time.
  private mutating func probeEnded(
    _ last: ELCommDetection.Probe, _ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects
  ) -> Outcome {
    receiver.flush(&effects)
    let isQuiet = now &- receiver.lastMessageAt >= ELCommDetection.quietTime / 2
    switch detection.evaluate(last, badRuns: receiver.badRuns, isQuiet: isQuiet) {
    case .unanswered:
      messageMissed(at: now, &effects)
      if isSilent(after: ELCommDetection.maxProbes, at: now) {
        boardStoppedResponding(at: now, &effects)
        misses.reset()
      }
      probe(at: now, &effects)
    case .drain: drain(at: now)
    case .probe: probe(at: now, &effects)
    case .found(let dialect): return setDialect(dialect, target, at: now, &effects)
    }
    return Outcome()
  }

  private mutating func setDialect(
    _ found: ELCommDialect, _ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects
  ) -> Outcome {
    dialect = found
    effects.publish(ELCommProperty.dialect.rawValue, .string(found.rawValue))
    // The first message in the detected dialect is off again.
    writer.startOver()
    switch found {
    case .asBuilt: sendPoll(pendingResponses: 0, target, at: now, &effects)
    case .documented: state = .listening(until: now &+ Self.boardTimeout, mustRespond: true)
    }
    return Outcome(detected: found)
  }

  /// Starts a new detection for a silent board, because it may have been replaced, unless a buzzer command is waiting. Returns whether a
  /// detection was started.
  private mutating func detectAgain(_ target: ELCommBuzzer.Target, at now: Instant, _ effects: inout Effects) -> Bool {
    boardStoppedResponding(at: now, &effects)
    guard settings.dialect == nil, !target.isOn, writer.isFree else { return false }
    misses.reset()
    detection.begin(hint: dialect, isProbeOpen: true)
    drain(at: now)
    return true
  }
}
