// Sending of the fast request and handling of each reply: values, a negative response, a vehicle that does not respond, or an unusable
// reply.

extension OBDMachine {
  private static let backOffSeconds: [Int64] = [1, 2, 5, 10, 30, 60]
  private static let minPage = 14

  mutating func writePollBytes() {
    pollBytes = Array(request.rawValue.utf8)
    if let frames = countedFrames { pollBytes.append(contentsOf: String(frames, radix: 16, uppercase: true).utf8) }
    pollBytes.append(carriageReturn)
  }

  /// The number of frames that the adapter waits for; nil: until its timeout.
  private var countedFrames: Int? { timings.isPagePatient || tuning != nil ? nil : count.frames }

  /// Protocol detection tries several, one of them at 5 baud.
  private static let searchTimeout: Nanoseconds = 12 * .second

  mutating func ask(at now: Instant, _ effects: inout Effects) {
    counters.polls &+= 1
    // While the gaps are being measured, polls may be late.
    if !requestQueue.isSurveyed, pace.period > 0 { pace.begin(at: now) }
    state = .asking(Poll(sent: now, lateness: pace.take(at: now), isCounted: countedFrames != nil))
    let timeout = bus.isCAN || errors.isSettled ? Self.timeout : Self.searchTimeout
    send(pollBytes, timeout: timeout, at: now, &effects)
  }

  mutating func pollReplied(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    switch readReply() {
    case .messages: judge(poll, at: now, &effects)
    case .empty: failed(.unusable("empty reply"), poll, at: now, &effects)
    case .unreadable(let reason): failed(.unusable(reason), poll, at: now, &effects)
    case .status(let status): failed(.status(status), poll, at: now, &effects)
    }
  }

  /// Parses the reply. Detects an adapter that always omits the checksum.
  private mutating func readReply() -> CANReader.Outcome {
    let outcome = reader.read(dialogue.reply, from: dialogue.body)
    if reader.checks.held { (missingChecks, reader.hasNoChecks) = (nil, false) }
    guard !reader.hasNoChecks, reader.checks.missed, let missing = missingChecks else { return outcome }
    missingChecks = missing + 1
    guard missing >= 2 else { return outcome }
    reader.hasNoChecks = true
    return reader.read(dialogue.reply, from: dialogue.body)
  }

  private mutating func judge(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    if doubt != nil { return doubtAnswered(poll, at: now, &effects) }
    if request.isDiscovery { return discovered(poll, at: now, &effects) }
    switch reader.answer(echo: request.echo, parameters: request.parameters, from: request.target, before: answerer) {
    case .message(let answer):
      let head = request.echo.count
      let data = answer.start + head..<answer.start + answer.length
      if doubtsPage, !reader.payload.withUnsafeBufferPointer({ BMSRecord.isPlausible(UnsafeBufferPointer(rebasing: $0[data])) }) {
        return foreignPage(poll, at: now, &effects)
      }
      if request.parameters.isEmpty, answer.length < head + Self.minPage {
        return failed(.unusable("response too short"), poll, at: now, &effects)
      }
      if !request.parameters.isEmpty, reader.end(of: request.parameters, in: answer) == nil {
        return failed(.misfit("response length differs from SAE J1979"), poll, at: now, &effects)
      }
      answerer = answer.source
      answered(poll, data, from: answer.source, at: now, &effects)
    case .refusal(let code): failed(.negative(code), poll, at: now, &effects)
    case .nothing(let reason): failed(.unusable(reason), poll, at: now, &effects)
    }
  }

  private mutating func answered(_ poll: Poll, _ data: Range<Int>, from source: UInt32?, at now: Instant, _ effects: inout Effects) {
    dialogue.isInStep()
    let isFirst = !errors.isSettled
    errors = ErrorCounters(isSettled: true, shortAnswers: errors.shortAnswers)
    state = .polling
    if failsTogether == .proven { return askOneByOne(at: now, &effects) }
    let frames = count.frames
    if let frames = reader.frames(askedOf: request.target) { count.answered(frames: frames) }
    if count.frames != frames { writePollBytes() }
    if request.parameters.isEmpty {
      if isFirst { recognise(data, &effects) }
      values.publishRecord(reader, data, at: now, &effects)
    } else {
      let share = values.publish(primary, request.parameters, reader, data, from: source, at: now, &effects)
      if share == .none { values.countBadReply(dialogue.reply, &effects) }
      judgePrimary(share)
    }
    if values.inUseAt == now { care?.isUsed(at: now) }
    easeTimeout()
    if isMissed { askWhoAgain() }
    requestQueue.fastAnswered(afterSilence: isFirst, isLate: pace.period == 0 || now >= pace.due)
    timing.add(answered: now, roundTrip: max(now &- poll.sent, 0), lateness: poll.lateness)
    tuningPolled(max(now &- poll.sent, 0), &effects)
    if isFirst {
      values.publish(.request, .string(request.rawValue), &effects)
      if !request.parameters.isEmpty {
        keepControllers(&effects)
      } else if storedRequest != request {
        effects.append(.store(key: "request", Array(request.rawValue.utf8)))
      }
      storedRequest = request
    }
    if isFirst || counters.isOld(at: now) { publishMeasurements(at: now, &effects) }
    if restIfIdle(at: now, &effects) { return }
    isProbing = false
    values.publish(status: .polling, &effects)
    values.publish(fault: nil, &effects)
  }

  /// An ECU that responds promptly for a while no longer needs the long timeout.
  private mutating func easeTimeout() {
    guard timings.isPagePatient else { return }
    timings.promptAnswers = reader.messages.count == 1 ? timings.promptAnswers + 1 : 0
    if timings.promptAnswers >= 5 {
      timings.isPagePatient = false
      writePollBytes()
    }
  }

  /// If only some PIDs were answered, they are requested one by one.
  private mutating func judgePrimary(_ share: ValueTable.Share) {
    guard request.parameters.count > 1 else { return }
    errors.shortAnswers = share == .whole ? 0 : errors.shortAnswers + 1
    guard errors.shortAnswers >= 2 else { return }
    errors.shortAnswers = 0
    splitFast()
  }

  /// The reason why a poll brought no values.
  enum Failure {
    case status(ELMStatus)
    case negative(UInt8)
    /// A response of the right ECU that violates SAE J1979.
    case misfit(String)
    case unusable(String)
  }

  mutating func failed(_ failure: Failure, _ poll: Poll, at now: Instant, _ effects: inout Effects) {
    state = .polling
    pace.failed(at: now)
    if let message = endDoubt(), doubtFailed(failure, message, at: now, &effects) { return }
    if endsDiscovery(failure) { return discoveryEnded(at: now, &effects) }
    if request.isDiscovery, discoveryMisses == 1 { return }
    tuningPolled(nil, &effects)
    // After possible changes of the schema.
    defer { publishCounters(at: now, &effects) }
    if poll.isCounted && doubtsTheCount(failure) { return }
    switch failure {
    case .unusable(let reason):
      suspectRequest(reason)
      unusable(reason, resynchronising: true, at: now, &effects)
    case .misfit(let reason): misfit(reason, at: now, &effects)
    case .negative(let code): refused(code, at: now, &effects)
    case .status(let status):
      switch status.demand {
      case .refuse:
        if !makeWay(status.message, at: now, &effects) { tryOther(status.message, isFinal: false, at: now, &effects) }
      case .wait: silent(status.message, at: now, &effects)
      // Another protocol may be the right one.
      case .backOff where !errors.isSettled: tryOther(status.message, isFinal: false, at: now, &effects)
      case .backOff: if isProbing || !beginDoubt(status.message) { backOff(status.message, at: now, &effects) }
      case .retry: disturbed(status.message, at: now, &effects)
      case .discard:
        suspectRequest(status.message)
        unusable(status.message, resynchronising: false, at: now, &effects)
      case .resynchronise, .acknowledge, .ignore:
        suspectRequest(status.message)
        unusable(status.message, resynchronising: true, at: now, &effects)
      case .setUpAgain, .wake: lostSettings(status, at: now, &effects)
      }
    }
  }

  /// Repeated failures may be the fault of this request alone: the next poll asks for the PIDs that every ECU supports.
  private mutating func suspectRequest(_ message: String) {
    errors.spoilt += 1
    if errors.spoilt % 3 == 0, !isProbing { _ = beginDoubt(message) }
  }

  /// An incomplete response to a request with a count may be due to the count. Returns whether the count is dropped, and whether the
  /// request must be repeated without it.
  private mutating func doubtsTheCount(_ failure: Failure) -> Bool {
    defer { writePollBytes() }
    switch failure {
    case .status(.notUnderstood):
      count.isRefused()
      return true
    case .status(.noData), .negative(0x11), .negative(0x12), .negative(0x13), .negative(0x31):
      count.drop()
      return true
    case .unusable, .misfit:
      count.drop()
      return false
    case .status(let status):
      if status.demand == .discard || status.demand == .resynchronise || status.demand == .acknowledge { count.drop() }
      return false
    case .negative: return false
    }
  }

  private mutating func refused(_ code: UInt8, at now: Instant, _ effects: inout Effects) {
    let message = "the vehicle rejects the request (\(NegativeResponse.name(of: code)))"
    let demand = NegativeResponse.demand(of: code)
    // An ECU that repeatedly rejects one request may answer others.
    if pollsParameters, demand == .tryOther || demand == .backOff || demand == .giveUp {
      errors.negatives += 1
      if errors.negatives < 3 || makeWay(message, at: now, &effects) { return }
    }
    switch demand {
    case .tryOther: tryOther("\(message): this car may not be supported", isFinal: code == 0x33, at: now, &effects)
    case .askAgain:
      errors.busy += 1
      if errors.busy > 3, !makeWay(message, at: now, &effects) { backOff("\(message); retrying later", at: now, &effects) }
    case .pause:
      errors.busy += 1
      // The response repeatedly comes after the adapter's timeout: use the long one.
      if errors.busy >= 3, !timings.isPagePatient {
        (timings.isPagePatient, timings.promptAnswers) = (true, 0)
        writePollBytes()
      }
      // It has just said that it is there.
      if errors.busy > 3, makeWay(message, at: now, &effects) { return }
      if errors.busy > 3 { fallSilent("\(message); retrying every second", .carSilent, &effects) }
      state = .backingOff(Pause(until: now &+ .second))
    case .backOff: backOff("\(message); retrying later", at: now, &effects)
    case .giveUp: stopAsking(message, &effects)
    }
  }

  /// The vehicle does not support this request, or never answered it: try the next, and after all of them pause.
  mutating func tryOther(_ message: String, isFinal: Bool, at now: Instant, _ effects: inout Effects) {
    // The ECUs have just reported their supported PIDs.
    if errors.hasDiscovered, makeWay(message, at: now, &effects) { return }
    errors.hasDiscovered = false
    if tryNext() { return }
    if isFinal { stopAsking(message, &effects) } else { backOff(message, at: now, &effects) }
  }

  private mutating func silent(_ message: String, at now: Instant, _ effects: inout Effects) {
    if dialogue.hasEcho, !traits.missing.contains(.echoOff), !hasHeededEcho {
      // Echo is on again: the adapter may have restarted unnoticed, and use the wrong ECU and protocol.
      hasHeededEcho = true
      return setUpAgain(at: now, &effects)
    }
    guard errors.isSettled else { return tryOther(message, isFinal: false, at: now, &effects) }
    errors.silences += 1
    guard errors.silences >= 3 else { return }
    if isProbing || !beginDoubt(message) { backOff(message, at: now, &effects) }
  }

  private mutating func disturbed(_ message: String, at now: Instant, _ effects: inout Effects) {
    errors.disturbances += 1
    guard errors.disturbances >= 3 else { return }
    if errors.disturbances == 3, !isProbing, beginDoubt(message) { return }
    withdrawVehicle(message, &effects)
    rest(until: now &+ nextPause(), message, &effects)
  }

  mutating func backOff(_ message: String, at now: Instant, _ effects: inout Effects) {
    let silence = nextSilence()
    fallSilent(silence.message.map { "\(message); \($0)" } ?? message, silence.word, &effects)
    leaveAlone(for: silence.pause, at: now)
    errors.madeWay = 0
    // Every fourth time the request that all ECUs support is sent.
    if errors.backOffs % 4 == 3 { _ = beginDoubt(message) }
  }

  /// Repeating the request could cause a lock-out.
  private mutating func stopAsking(_ message: String, _ effects: inout Effects) {
    fallSilent("\(message); disconnect and connect to retry", .carSilent, &effects)
    state = .backingOff(Pause(until: nil))
  }

  private mutating func fallSilent(_ message: String, _ word: ValueTable.StatusWord, _ effects: inout Effects) {
    endTuning(.refused(code: "no-answer", message), &effects)
    let message = word == .noCar ? "the adapter measures no battery voltage; plug it into a vehicle, or check the contacts" : message
    withdrawVehicle(message, &effects)
    isMissed = true
    if word == .noCar { withdrawIdentity(message, &effects) }
    values.publish(status: word, &effects)
    values.publish(fault: message, &effects)
  }

  /// The number of pauses that are shorter than `pause`.
  static func backOffs(before pause: Nanoseconds) -> Int { backOffSeconds.prefix { $0 * .second < pause }.count }

  mutating func nextPause() -> Nanoseconds {
    let seconds = Self.backOffSeconds[min(errors.backOffs, Self.backOffSeconds.count - 1)]
    errors.backOffs += 1
    return seconds * .second
  }
}
