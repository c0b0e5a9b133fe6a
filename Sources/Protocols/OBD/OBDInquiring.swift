// The requests beside the fast one: retargeting of the adapter there and back, and handling of the responses. A rejected request is sent
// again after ten minutes, one without a response at growing intervals; neither affects the fast request.

extension OBDMachine {
  private static let refusalLasts: Nanoseconds = 600 * .second
  private static let scalesLast: Nanoseconds = 600 * .second
  /// The timeout of a chip with STPX: 200 ms.
  private static let extendedTimeout: Nanoseconds = .second
  private static let busyPause: Nanoseconds = 100 * .millisecond

  /// The next command while polling.
  enum Errand {
    case nothing, poll, question, voltage
    case turn(ECUAddressing)
    case inquire(Int)
  }

  /// Queries first, then the fast request at its slot, then requests that fit in the gap, then the way back to `home`.
  mutating func errand(at now: Instant) -> Errand {
    if !questions.isEmpty { return .question }
    let room = pace.due &- now
    let isDue = now >= pace.due
    if wantsVoltage(at: now, room: room) { return .voltage }
    let way = RequestQueue.AdapterAddressing(addressing: addressing, home: home, takesHeader: traits.takesHeader && request.target.isUsual)
    // Back to back there are no gaps: overdue requests go between two polls.
    if !isDue || requestQueue.hasForced(at: now), errors.isSettled, !isProbing, tuning == nil,
      let index = requestQueue.pick(at: now, room: max(room, 0), way)
    {
      let inquiry = requestQueue.requests[index]
      let there = addressing(for: inquiry)
      return there == addressing || way.reaches(inquiry) ? .inquire(index) : .turn(there)
    }
    requestQueue.nothingBegins()
    if addressing != way.home { return .turn(way.home) }
    return isDue ? .poll : .nothing
  }

  mutating func run(_ errand: Errand, at now: Instant, _ effects: inout Effects) {
    switch errand {
    case .nothing: break
    case .poll: ask(at: now, &effects)
    case .question: beginQuery(nil, at: now, &effects)
    case .voltage: measure(isProbe: false, at: now, &effects)
    case .turn(let there): turn(to: there, at: now, &effects)
    case .inquire(let index):
      let inquiry = requestQueue.requests[index]
      let bytes = addressing(for: inquiry) == addressing ? inquiry.bytes : inquiry.bytes(countingFrames: traits.countsFrames)
      requestQueue.asked(index, at: now, room: max(pace.due &- now, 0))
      state = .inquiring(index, sent: now)
      let isShort = bytes.starts(with: "STPX".utf8) && !inquiry.isPatient
      send(bytes, timeout: isShort ? Self.extendedTimeout : Self.timeout, at: now, &effects)
    }
  }

  // MARK: Answers

  /// The request in flight carries its header.
  var isExtended: Bool { dialogue.command.starts(with: "STPX".utf8) }

  static let withoutExtendedKey = "no-stpx"

  /// The adapter identifies as an STN chip without being one.
  private mutating func askByTurning(_ index: Int, at now: Instant, _ effects: inout Effects) {
    traits.takesNoHeader()
    withoutExtended = traits.name
    effects.append(.store(key: Self.withoutExtendedKey, Array((traits.name ?? "").utf8)))
    // The default filter was sufficient for STPX; `home` sets a narrower one.
    addressing?.target = nil
    requestQueue.postpone(index, until: now)
  }

  mutating func extendedTimedOut(_ index: Int, at now: Instant, _ effects: inout Effects) {
    effects.append(.note("no reply to STPX: the adapter is retargeted for each ECU"))
    askByTurning(index, at: now, &effects)
    resynchronise(at: now, &effects)
  }

  mutating func inquiryReplied(_ index: Int, sent: Instant, at now: Instant, _ effects: inout Effects) {
    state = .polling
    let took = max(now &- sent, 0)
    switch reader.read(dialogue.reply, from: dialogue.body) {
    case .messages: judge(index, took: took, at: now, &effects)
    case .empty: inquiryUnusable(index, "empty reply", took: took, at: now, &effects)
    case .unreadable(let reason):
      if isExtended { traits.doesCountFrames() }
      inquiryUnusable(index, reason, took: took, at: now, &effects)
    case .status(let status):
      switch status.demand {
      case .setUpAgain, .wake: lostSettings(status, at: now, &effects)
      case .wait, .backOff, .retry: missed(index, requestQueue.requests[index].message(for: status), took: took, at: now, &effects)
      case .refuse where isExtended:
        askByTurning(index, at: now, &effects)
      case .refuse:
        // The adapter does not support the digit or the length of the request.
        requestQueue.countRefused(index)
        missed(index, status.message, took: took, at: now, &effects)
      case .discard, .resynchronise, .acknowledge, .ignore: inquiryUnusable(index, status.message, took: took, at: now, &effects)
      }
    }
  }

  private mutating func judge(_ index: Int, took: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    let inquiry = requestQueue.requests[index]
    if inquiry.isCheck { check(&effects) }
    if inquiry.isIdentity, let row = inquiry.rows.first, let (answer, source) = identity(inquiry) {
      guard case .texts(let texts) = answer else {
        let message = "unreadable vehicle information"
        values.withdraw(requestQueue.requests[index], message, &effects)
        return inquiryUnusable(index, message, took: took, at: now, &effects)
      }
      dialogue.isInStep()
      requestQueue.answered(index, at: now, took: took, frames: reader.frames(askedOf: inquiry.target), by: source)
      return tell(texts, at: row.position, &effects)
    }
    switch reader.answer(echo: inquiry.echo, parameters: inquiry.parameters, from: inquiry.target, before: inquiry.answerer) {
    case .message(let answer):
      dialogue.isInStep()
      let data = answer.start + inquiry.echo.count..<answer.start + answer.length
      let share = values.publish(inquiry.rows, inquiry.parameters, reader, data, from: answer.source, at: now, &effects)
      if share == .none { values.countBadReply(dialogue.reply, &effects) }
      if values.inUseAt == now { care?.isUsed(at: now) }
      if share == .none, inquiry.parameters.count == 1 {
        return missed(index, "response length differs from SAE J1979", took: took, at: now, &effects)
      }
      requestQueue.answered(index, at: now, took: took, frames: reader.frames(askedOf: inquiry.target), by: answer.source)
      if inquiry.asksScales {
        values.takeScales(reader)
        if share == .whole { requestQueue.postpone(index, until: now &+ Self.scalesLast) }
      }
      judge(share, of: index, &effects)
      askedAlone(inquiry, isAnswered: share == .whole)
      if inquiry.isReplaced, share == .whole { takeItsPlace(index) }
    case .refusal(let code): refused(index, code, took: took, at: now, &effects)
    case .nothing(let reason): inquiryUnusable(index, reason, took: took, at: now, &effects)
    }
  }

  private mutating func refused(_ index: Int, _ code: UInt8, took: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    let message = "the vehicle rejects the request (\(NegativeResponse.name(of: code)))"
    askedAlone(requestQueue.requests[index], isAnswered: false)
    switch NegativeResponse.demand(of: code) {
    case .tryOther where requestQueue.requests[index].isFast || requestQueue.requests[index].isReplaced:
      missed(index, message, took: took, at: now, &effects)
    case .tryOther:
      requestQueue.refused(index, message, until: now &+ Self.refusalLasts)
      values.withdraw(requestQueue.requests[index], message, &effects)
    case .pause where !requestQueue.requests[index].isPatient:
      // The response came after the adapter's timeout. It is requested again later, with a longer one.
      requestQueue.becomePatient(index, until: now &+ Self.busyPause)
    case .giveUp:
      requestQueue.refused(index, message, until: .max)
      values.withdraw(requestQueue.requests[index], message, &effects)
    case .askAgain where requestQueue.requests[index].misses < 3:
      requestQueue.busy(index, until: now &+ Self.busyPause)
    case .askAgain, .pause, .backOff: missed(index, message, took: took, at: now, &effects)
    }
  }

  private mutating func missed(_ index: Int, _ message: String, took: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    askedAlone(requestQueue.requests[index], isAnswered: false)
    requestQueue.missed(index, at: now, took: took)
    // Identification must not be that of another vehicle.
    guard requestQueue.requests[index].misses >= (requestQueue.requests[index].isIdentity ? 1 : 2) else { return }
    values.withdraw(requestQueue.requests[index], message, &effects)
    // Perhaps there were too many PIDs in one request.
    requestQueue.splitIfUnanswered(index)
  }

  private mutating func inquiryUnusable(
    _ index: Int, _ reason: String, took: Nanoseconds, at now: Instant, _ effects: inout Effects
  ) {
    requestQueue.missed(index, at: now, took: took)
    if requestQueue.requests[index].misses >= 2 { values.withdraw(requestQueue.requests[index], reason, &effects) }
    unusable(reason, resynchronising: true, at: now, &effects)
  }

  /// The request failed for a reason that is not its own.
  mutating func inquiryMissed(_ index: Int, sent: Instant, at now: Instant) {
    requestQueue.missed(index, at: now, took: max(now &- sent, 0))
    state = .polling
  }

  /// An ECU that answers only some of the PIDs gets smaller requests; one that answers only the first is remembered as answering one PID at
  /// a time.
  private mutating func judge(_ share: ValueTable.Share, of index: Int, _ effects: inout Effects) {
    guard share != .whole, requestQueue.requests[index].parameters.count > 1 else { return }
    guard requestQueue.answeredShort(index), share == .one, case .standard(var found) = vehicle, found.most > 1 else { return }
    found.most = 1
    vehicle = .standard(found)
    keepControllers(&effects)
  }
}

extension PollRequest {
  /// The reason for absence while the vehicle responds to other requests: `7E5 does not respond to 22E011`.
  fileprivate func message(for status: ELMStatus) -> String {
    let who = target.reply.flatMap { _ in target.request }?.text ?? "no ECU"
    let what = "\(who == "no ECU" ? "responds to" : "does not respond to") \(String(decoding: hexText(request), as: UTF8.self))"
    return "\(who) \(what)\(status == .noData ? "" : ": \(status.message)")"
  }
}
