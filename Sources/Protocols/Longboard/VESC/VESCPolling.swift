// Receiving: responses are matched to the request by their ID, and unexpected ones ignored. A VESC that does not respond is polled
// twice per second until it does; then everything about it is read again, since it may have been switched off.

extension VESCMachine {
  private static let quietInterval: Nanoseconds = 500 * .millisecond
  /// Fewer invalid bytes than these are not reported.
  private static let muchNoise = 16

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    if case .down = state { return }
    var rest = bytes[...]
    while !rest.isEmpty {
      reader.take(&rest)
      while let payload = reader.next() { heard(payload, at: now, &effects) }
    }
  }

  private mutating func heard(_ payload: ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects) {
    guard case .asking(let question) = state, payload.first == question.command.rawValue else { return }
    guard understand(question, payload.dropFirst(), at: now, &effects) else {
      counters.badAnswers &+= 1
      return
    }
    let isFirst = !talk.isSettled
    talk.answered(question.command)
    state = .ready
    if isFirst { beganToAnswer(at: now, &effects) } else { motion.answered(question.sent) }
    if question.command != .pingCAN {
      timing.add(answered: now, roundTrip: max(now &- question.sent, 0), lateness: question.lateness)
    }
    if isFirst || Counters.isOld(counters.measured, at: now) { publishMeasurements(at: now, &effects) }
  }

  /// Takes the values of a response; false if it is invalid.
  private mutating func understand(_ question: Question, _ payload: ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects) -> Bool {
    switch question.command {
    case .firmware:
      guard let firmware = VESCFirmware(payload) else { return false }
      talk.isIdentified = true
      publish(firmware, &effects)
    case .values, .setup, .selectSetup:
      guard values.read(question.command, payload) else { return false }
      if let count = values[.vescs] { limits.vescs = count }
      publishValues(question.command, at: now, &effects)
    case .limits:
      guard let board = VESCBoard(payload) else { return false }
      if limits.geometry != board.geometry { forgetWhatWasSaid() }
      limits.geometry = board.geometry
      limitsAnswered(board, &effects)
    case .setLimits: limitsTaken()
    case .pingCAN: pingAnswered(payload, &effects)
    default: return false
    }
    return true
  }

  mutating func timedOut(_ question: Question, at now: Instant, _ effects: inout Effects) {
    state = .ready
    // A complete response may follow a false start in the buffer.
    while let payload = reader.nextAfterSilence() {
      state = .asking(question)
      heard(payload, at: now, &effects)
      guard case .asking = state else { return }
    }
    state = .ready
    counters.timeouts &+= 1
    publishCounters(at: now, &effects)
    if question.command == .pingCAN { return pingTimedOut(&effects) }
    talk.missed(question.command)
    wishMissed(question.command, &effects)
    // If only one response was lost, the request is repeated; if all were, the VESC counts as silent.
    if silence != nil || talk.timeouts >= Self.silences { fellSilent(at: now, &effects) }
  }

  private mutating func fellSilent(at now: Instant, _ effects: inout Effects) {
    let isNoisy = reader.noise >= Self.muchNoise
    let whose = options.can.map { " \($0) on the CAN bus" } ?? ""
    silence =
      isNoisy
      ? "invalid data: not a VESC, or wrong baud rate (usually 115200) or wiring"
      : "the VESC\(whose) does not respond: check that its app is set to UART and that it is switched on"
    reader.reset()
    if motion.isHeld { loseLease("the VESC does not respond", at: now, &effects) }
    failWishes(.notConnected(silence ?? ""), &effects)
    talk = VESCConversation()
    talk.hearsNoise = isNoisy
    forgetBoard()
    for position in VESCSignal.reported where position != VESCSignal.connected.rawValue && position != VESCSignal.totalDistance.rawValue {
      withdraw(position, silence ?? "", &effects)
    }
    for position in VESCSignal.measured { withdraw(position, silence ?? "", &effects) }
    publish(.connected, .bool(false), &effects)
    sayMode(&effects)
    state = .silent(until: now &+ Self.quietInterval)
  }

  /// The first response after a silence.
  private mutating func beganToAnswer(at now: Instant, _ effects: inout Effects) {
    silence = nil
    timing.forget()
    pace.begin(at: now)
    motion.answersAgain(at: now)
    publish(.connected, .bool(true), &effects)
    beginMode(&effects)
  }

  /// Known values of the VESC are invalid after a silence.
  mutating func forgetBoard() {
    limits.inForce = nil
    limits.geometry = nil
    limits.vescs = nil
    (faultCode, faultMessage) = (0, nil)
    way.forgetCounters()
    timing.forget()
  }
}
