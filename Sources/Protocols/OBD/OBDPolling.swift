// How the machine asks for the page and what it makes of each reply: values, a refusal that leads to the other request,
// a silent vehicle that is asked ever less often, or a reply that nothing is read from.

extension OBDMachine {
  private static let backOffSeconds: [Int64] = [1, 2, 5, 10, 30, 60]
  private static let shortestPage = 14

  mutating func writePollBytes() {
    pollBytes = Array(request.rawValue.utf8)
    if let frames = count.frames { pollBytes.append(contentsOf: String(frames, radix: 16, uppercase: true).utf8) }
    pollBytes.append(carriageReturn)
  }

  mutating func ask(at now: Instant, _ effects: inout Effects) {
    counters.polls &+= 1
    // While the gaps are being measured the page comes when it can.
    if !timetable.isSurveyed, pace.period > 0 { pace.begin(at: now) }
    state = .asking(Poll(sent: now, lateness: pace.take(at: now), isCounted: count.frames != nil))
    send(pollBytes, at: now, &effects)
  }

  mutating func pollReplied(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    switch reader.read(dialogue.reply, from: dialogue.body) {
    case .messages: judge(poll, at: now, &effects)
    case .empty: failed(.unusable("an empty reply"), poll, at: now, &effects)
    case .unreadable(let reason): failed(.unusable(reason), poll, at: now, &effects)
    case .status(let status): failed(.status(status), poll, at: now, &effects)
    }
  }

  /// Only the answer to this request, from the controller it went to, counts; a late answer to another is passed over.
  private mutating func judge(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    if request.isDiscovery { return discovered(poll, at: now, &effects) }
    var answer: ISOTPMessage?
    var refusal: UInt8?
    for message in reader.messages where message.source == nil || message.source == request.target.reply?.number {
      let bytes = reader.bytes(of: message)
      if bytes.starts(with: request.echo) {
        if answer != nil { return failed(.unusable("two answers to one request"), poll, at: now, &effects) }
        answer = message
      } else if message.length >= 3, bytes[bytes.startIndex] == 0x7F, bytes[bytes.startIndex + 1] == request.service {
        refusal = bytes[bytes.startIndex + 2]
      }
    }
    if let answer {
      let head = request.echo.count
      let shortest = request.parameters.isEmpty ? Self.shortestPage : 1 + (request.parameters.first?.count ?? 0)
      if answer.length < head + shortest { return failed(.unusable("the page is too short"), poll, at: now, &effects) }
      answered(poll, answer.start + head..<answer.start + answer.length, at: now, &effects)
    } else if let refusal {
      failed(.negative(refusal), poll, at: now, &effects)
    } else {
      failed(.unusable("an answer to another request"), poll, at: now, &effects)
    }
  }

  private mutating func answered(_ poll: Poll, _ data: Range<Int>, at now: Instant, _ effects: inout Effects) {
    dialogue.isInStep()
    let isFirst = !streaks.isSettled
    streaks = Streaks(isSettled: true)
    state = .polling
    let frames = count.frames
    if reader.messages.count == 1 { count.answered(length: data.count + request.echo.count) }
    if count.frames != frames { writePollBytes() }
    if request.parameters.isEmpty {
      if isFirst { recognise(data, &effects) }
      publishPage(data, &effects)
    } else {
      publish(primary, request.parameters, data, &effects)
    }
    timetable.pageAnswered(afterSilence: isFirst)
    timing.add(answered: now, roundTrip: max(now &- poll.sent, 0), lateness: poll.lateness)
    if isFirst {
      publish(.request, .string(request.rawValue), &effects)
      if !request.parameters.isEmpty {
        keepControllers(&effects)
      } else if storedRequest != request {
        effects.append(.store(key: "request", Array(request.rawValue.utf8)))
      }
      storedRequest = request
    }
    if isFirst || counters.isOld(at: now) { publishMeasurements(at: now, &effects) }
    say(.polling, &effects)
    complain(nil, &effects)
  }

  /// Why a poll brought no values.
  enum Failure {
    case status(ELMStatus)
    case negative(UInt8)
    case unusable(String)
  }

  mutating func failed(_ failure: Failure, _ poll: Poll, at now: Instant, _ effects: inout Effects) {
    state = .polling
    pace.failed(at: now)
    if endsDiscovery(failure) { return discoveryEnded(at: now, &effects) }
    publishCounters(at: now, &effects)
    if poll.isCounted && doubtsTheCount(failure) { return }
    switch failure {
    case .unusable(let reason): unusable(reason, resynchronising: true, at: now, &effects)
    case .negative(let code): refused(code, at: now, &effects)
    case .status(let status):
      switch status.demand {
      case .refuse: tryOther(status.words, isFinal: false, at: now, &effects)
      case .wait: silent(status.words, at: now, &effects)
      case .backOff: backOff(status.words, at: now, &effects)
      case .retry: disturbed(status.words, at: now, &effects)
      case .discard: unusable(status.words, resynchronising: false, at: now, &effects)
      case .resynchronise, .acknowledge, .ignore: unusable(status.words, resynchronising: true, at: now, &effects)
      case .setUpAgain, .wake: lostSettings(status, at: now, &effects)
      }
    }
  }

  /// A counted request that was not answered in full may have failed for its digit: whether the digit goes, and whether
  /// only an uncounted request can tell more.
  private mutating func doubtsTheCount(_ failure: Failure) -> Bool {
    defer { writePollBytes() }
    switch failure {
    case .status(.notUnderstood):
      count.isRefused()
      return true
    case .status(.noData), .negative(0x11), .negative(0x12), .negative(0x13), .negative(0x31):
      count.drop()
      return true
    case .unusable:
      count.drop()
      return false
    case .status(let status):
      if status.demand == .discard || status.demand == .resynchronise || status.demand == .acknowledge { count.drop() }
      return false
    case .negative: return false
    }
  }

  private mutating func refused(_ code: UInt8, at now: Instant, _ effects: inout Effects) {
    let words = "the vehicle refuses the request (\(NegativeResponse.name(of: code)))"
    switch NegativeResponse.demand(of: code) {
    case .tryOther: tryOther("\(words): this car may not be supported", isFinal: code == 0x33, at: now, &effects)
    case .askAgain:
      streaks.busy += 1
      if streaks.busy > 3 { backOff("\(words): it is asked again later", at: now, &effects) }
    case .pause:
      streaks.busy += 1
      if streaks.busy > 3 { fallSilent("\(words): it is asked again every second", &effects) }
      state = .backingOff(Pause(until: now &+ .second))
    case .backOff: backOff("\(words): it is asked again later", at: now, &effects)
    case .giveUp: stopAsking(words, &effects)
    }
  }

  /// The vehicle does not know this request, or never answered it: the other one, and after both a pause.
  mutating func tryOther(_ words: String, isFinal: Bool, at now: Instant, _ effects: inout Effects) {
    tryNextCandidate()
    guard streaks.refusals >= candidates.count else { return }
    streaks.refusals = 0
    if isFinal { stopAsking(words, &effects) } else { backOff(words, at: now, &effects) }
  }

  private mutating func silent(_ words: String, at now: Instant, _ effects: inout Effects) {
    if dialogue.hasEcho && !traits.missing.contains(.echoOff) && !streaks.hasHeededEcho {
      // Echo is back: the adapter may have started again unheard, and asks the wrong controller on the wrong bus.
      streaks.hasHeededEcho = true
      return setUpAgain(at: now, &effects)
    }
    guard streaks.isSettled else { return tryOther(words, isFinal: false, at: now, &effects) }
    streaks.silences += 1
    if streaks.silences >= 3 { backOff(words, at: now, &effects) }
  }

  private mutating func disturbed(_ words: String, at now: Instant, _ effects: inout Effects) {
    streaks.disturbances += 1
    guard streaks.disturbances >= 3 else { return }
    withdrawVehicle(words, &effects)
    rest(until: now &+ nextPause(), words, &effects)
  }

  private mutating func backOff(_ words: String, at now: Instant, _ effects: inout Effects) {
    fallSilent(words, &effects)
    state = .backingOff(Pause(until: now &+ nextPause()))
  }

  /// Asking again by ourselves would do harm.
  private mutating func stopAsking(_ words: String, _ effects: inout Effects) {
    fallSilent("\(words): disconnect and connect again to try once more", &effects)
    state = .backingOff(Pause(until: nil))
  }

  private mutating func fallSilent(_ words: String, _ effects: inout Effects) {
    withdrawVehicle(words, &effects)
    say(.carSilent, &effects)
    complain(words, &effects)
  }

  private mutating func nextPause() -> Nanoseconds {
    let seconds = Self.backOffSeconds[min(streaks.backOffs, Self.backOffSeconds.count - 1)]
    streaks.backOffs += 1
    return seconds * .second
  }
}
