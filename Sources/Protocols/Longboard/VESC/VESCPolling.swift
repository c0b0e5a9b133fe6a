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
      statistics.receivedInvalidResponse()
      return
    }
    let isFirst = !talk.isSettled
    talk.answered(question.command)
    state = .ready
    if isFirst { beganToAnswer(at: now, &effects) } else { motion.responded(to: question.sent) }
    if question.command != .pingCAN {
      statistics.add(roundTrip: now &- question.sent, lateness: question.lateness, at: now)
    }
    if isFirst || statistics.isDue(at: now) {
      statistics.publish(missed: pace.missed, noise: reader.runsOfNoise, at: now, &publisher, &effects)
    }
  }

  /// Takes the values of a response; false if it is invalid.
  private mutating func understand(_ question: Question, _ payload: ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects) -> Bool {
    switch question.command {
    case .firmware:
      guard let firmware = VESCFirmware(payload) else { return false }
      talk.isIdentified = true
      telemetry.publish(firmware, &publisher, &effects)
    case .values, .setup, .selectSetup:
      let lacksSetup = talk.setup == .lacking
      guard telemetry.read(question.command, payload, lacksSetup: lacksSetup, &publisher, &effects) else { return false }
      if let count = telemetry.values[.vescs] { limits.vescs = count }
      guard question.command != .selectSetup else { break }
      if odometer.read(telemetry.values, telemetry.geometry, lacksSetup: lacksSetup, at: now, &publisher, &effects) { beginMode(&effects) }
      sayMode(&effects)
    case .limits:
      guard let board = VESCBoard(payload) else { return false }
      if telemetry.take(board.geometry) { publisher.forget() }
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
    statistics.timedOut()
    statistics.publishCounters(missed: pace.missed, noise: reader.runsOfNoise, at: now, &publisher, &effects)
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
    motion.revoke("the VESC does not respond", at: now, &publisher, &effects)
    failWishes(.notConnected(silence ?? ""), &effects)
    talk = VESCConversation()
    talk.hearsNoise = isNoisy
    forgetBoard()
    for signal in VESCSignal.reported + VESCSignal.measured { publisher.withdraw(signal, silence ?? "", &effects) }
    publisher.publish(.connected, .bool(false), &effects)
    sayMode(&effects)
    state = .silent(until: now &+ Self.quietInterval)
  }

  /// The first response after a silence.
  private mutating func beganToAnswer(at now: Instant, _ effects: inout Effects) {
    silence = nil
    statistics.forgetTimes()
    pace.begin(at: now)
    motion.respondsAgain(at: now)
    publisher.publish(.connected, .bool(true), &effects)
    beginMode(&effects)
  }

  /// Known values of the VESC are invalid after a silence.
  mutating func forgetBoard() {
    limits.inForce = nil
    limits.vescs = nil
    telemetry.forget()
    odometer.forgetCounters()
    statistics.forgetTimes()
  }
}
