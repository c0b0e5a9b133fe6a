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
    case turn(Aim)
    case inquire(Int)
  }

  /// Queries first, then the fast request at its slot, then requests that fit in the gap, then the way back to `home`.
  mutating func errand(at now: Instant) -> Errand {
    if !questions.isEmpty { return .question }
    let room = pace.due &- now
    let isDue = now >= pace.due
    if wantsVoltage(at: now, room: room) { return .voltage }
    let way = Timetable.Way(aim: aim, home: home, takesHeader: traits.takesHeader && request.target.isUsual)
    // Back to back there are no gaps: overdue requests go between two polls.
    if !isDue || timetable.hasForced(at: now), streaks.isSettled, !isProbing, tuning == nil,
      let index = timetable.pick(at: now, room: max(room, 0), way)
    {
      let inquiry = timetable.inquiries[index]
      let there = aim(for: inquiry)
      return there == aim || way.reaches(inquiry) ? .inquire(index) : .turn(there)
    }
    timetable.nothingBegins()
    if aim != way.home { return .turn(way.home) }
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
      let inquiry = timetable.inquiries[index]
      let bytes = aim(for: inquiry) == aim ? inquiry.bytes : inquiry.bytes(countingFrames: traits.countsFrames)
      timetable.asked(index, at: now, room: max(pace.due &- now, 0))
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
    aim?.target = nil
    timetable.inquiries[index].due = now
  }

  mutating func extendedTimedOut(_ index: Int, at now: Instant, _ effects: inout Effects) {
    effects.append(.note("no reply to STPX: the adapter is retargeted for each ECU"))
    askByTurning(index, at: now, &effects)
    timetable.settle()
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
      case .wait, .backOff, .retry: missed(index, timetable.inquiries[index].message(for: status), took: took, at: now, &effects)
      case .refuse where isExtended:
        askByTurning(index, at: now, &effects)
      case .refuse:
        // The adapter does not support the digit or the length of the request.
        timetable.inquiries[index].count.isRefused()
        missed(index, status.message, took: took, at: now, &effects)
      case .discard, .resynchronise, .acknowledge, .ignore: inquiryUnusable(index, status.message, took: took, at: now, &effects)
      }
    }
    timetable.settle()
  }

  private mutating func judge(_ index: Int, took: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    let inquiry = timetable.inquiries[index]
    if inquiry.isCheck { check(&effects) }
    if inquiry.isIdentity, let row = inquiry.rows.first, let (answer, source) = identity(inquiry) {
      guard case .texts(let texts) = answer else {
        let message = "unreadable vehicle information"
        withdraw(index, message, &effects)
        return inquiryUnusable(index, message, took: took, at: now, &effects)
      }
      dialogue.isInStep()
      timetable.inquiries[index].answered(at: now, took: took, frames: reader.frames(askedOf: inquiry.target))
      timetable.inquiries[index].answerer = source
      return tell(texts, at: row.position, &effects)
    }
    switch reader.answer(echo: inquiry.echo, parameters: inquiry.parameters, from: inquiry.target, before: inquiry.answerer) {
    case .message(let answer):
      dialogue.isInStep()
      let data = answer.start + inquiry.echo.count..<answer.start + answer.length
      let share = publish(inquiry.rows, inquiry.parameters, data, from: answer.source, &effects)
      if share == .none, inquiry.parameters.count == 1 {
        return missed(index, "response length differs from SAE J1979", took: took, at: now, &effects)
      }
      timetable.inquiries[index].answered(at: now, took: took, frames: reader.frames(askedOf: inquiry.target))
      timetable.inquiries[index].answerer = answer.source
      if inquiry.asksScales { takeScales(index, isAll: share == .whole, at: now) }
      judge(share, of: index, &effects)
      askedAlone(inquiry, isAnswered: share == .whole)
      if inquiry.hasMadeWay, share == .whole { takeItsPlace(index) }
    case .refusal(let code): refused(index, code, took: took, at: now, &effects)
    case .nothing(let reason): inquiryUnusable(index, reason, took: took, at: now, &effects)
    }
  }

  private mutating func refused(_ index: Int, _ code: UInt8, took: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    let message = "the vehicle rejects the request (\(NegativeResponse.name(of: code)))"
    askedAlone(timetable.inquiries[index], isAnswered: false)
    switch NegativeResponse.demand(of: code) {
    case .tryOther where timetable.inquiries[index].isFast || timetable.inquiries[index].hasMadeWay:
      missed(index, message, took: took, at: now, &effects)
    case .tryOther:
      timetable.inquiries[index].refused(message, until: now &+ Self.refusalLasts)
      withdraw(index, message, &effects)
    case .pause where !timetable.inquiries[index].isPatient:
      // The response came after the adapter's timeout. It is requested again later, with a longer one.
      timetable.inquiries[index].becomePatient()
      timetable.inquiries[index].due = now &+ Self.busyPause
    case .giveUp:
      timetable.inquiries[index].refused(message, until: .max)
      withdraw(index, message, &effects)
    case .askAgain where timetable.inquiries[index].misses < 3:
      timetable.inquiries[index].misses += 1
      timetable.inquiries[index].due = now &+ Self.busyPause
    case .askAgain, .pause, .backOff: missed(index, message, took: took, at: now, &effects)
    }
  }

  private mutating func missed(_ index: Int, _ message: String, took: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    askedAlone(timetable.inquiries[index], isAnswered: false)
    timetable.inquiries[index].missed(at: now, took: took)
    // Identification must not be that of another vehicle.
    guard timetable.inquiries[index].misses >= (timetable.inquiries[index].isIdentity ? 1 : 2) else { return }
    withdraw(index, message, &effects)
    // Perhaps there were too many PIDs in one request.
    if timetable.inquiries[index].standing == .unknown, timetable.inquiries[index].parameters.count > 1 { timetable.split(index) }
  }

  private mutating func inquiryUnusable(
    _ index: Int, _ reason: String, took: Nanoseconds, at now: Instant, _ effects: inout Effects
  ) {
    timetable.inquiries[index].missed(at: now, took: took)
    if timetable.inquiries[index].misses >= 2 { withdraw(index, reason, &effects) }
    unusable(reason, resynchronising: true, at: now, &effects)
  }

  /// The request failed for a reason that is not its own.
  mutating func inquiryMissed(_ index: Int, sent: Instant, at now: Instant) {
    timetable.inquiries[index].missed(at: now, took: max(now &- sent, 0))
    timetable.settle()
    state = .polling
  }

  // MARK: Values

  /// Publishes the payload in `range`: a data record as a whole, or PID by PID, scaled by the ECU's own scaling. Returns how many of the
  /// PIDs were there.
  mutating func publish(
    _ rows: [Inquiry.Row], _ parameters: [Inquiry.Parameter], _ range: Range<Int>, from source: UInt32?, _ effects: inout Effects
  ) -> Share {
    let payload = reader.payload
    return payload.withUnsafeBufferPointer { payload in
      let data = UnsafeBufferPointer(rebasing: payload[range])
      guard !parameters.isEmpty else {
        for row in rows { publish(row.row.read(data), at: row.position, &effects) }
        return .whole
      }
      guard let end = CANReader.end(of: parameters, in: data, isBare: source == nil) else {
        keepBadReply(dialogue.reply, &effects)
        return .none
      }
      var (at, found) = (0, 0)
      while at < end, let parameter = parameters.first(where: { $0.number == data[at] }) {
        let part = UnsafeBufferPointer(rebasing: data[at + 1..<at + 1 + parameter.count])
        for row in rows where row.parameter == parameter.number {
          publish(row.row.value(part, scales, from: source), at: row.position, &effects)
        }
        polled.take(parameter.number, part, at: lastTurn)
        at += 1 + parameter.count
        found += 1
      }
      return found >= parameters.count ? .whole : found > 1 ? .part : .one
    }
  }

  /// Stores the scaling reported by each ECU. It does not change while it runs, so it is read rarely.
  private mutating func takeScales(_ index: Int, isAll: Bool, at now: Instant) {
    for message in reader.messages {
      let bytes = Array(reader.bytes(of: message))
      _ = StandardParameter.split(bytes[...]) { number, data in
        bytes[data].withUnsafeBufferPointer { scales.take(number, $0, from: message.source) }
      }
    }
    if isAll { timetable.inquiries[index].due = now &+ Self.scalesLast }
  }

  /// The share of PIDs that was answered.
  enum Share { case whole, part, one, none }

  /// An ECU that answers only some of the PIDs gets smaller requests; one that answers only the first is remembered as answering one PID at
  /// a time.
  private mutating func judge(_ share: Share, of index: Int, _ effects: inout Effects) {
    guard share != .whole, timetable.inquiries[index].parameters.count > 1 else { return }
    timetable.inquiries[index].shortAnswers += 1
    guard timetable.inquiries[index].shortAnswers >= 2 else { return }
    timetable.split(index)
    guard share == .one, case .standard(var found) = vehicle, found.most > 1 else { return }
    found.most = 1
    vehicle = .standard(found)
    keepControllers(&effects)
  }

  mutating func withdraw(_ index: Int, _ reason: String, _ effects: inout Effects) {
    for row in timetable.inquiries[index].rows {
      effects.withdraw(row.position, reason)
      said[row.position] = .none
    }
  }
}

extension Inquiry {
  /// The reason for absence while the vehicle responds to other requests: `7E5 does not respond to 22E011`.
  fileprivate func message(for status: ELMStatus) -> String {
    let who = target.reply.flatMap { _ in target.request }?.text ?? "no ECU"
    let what = "\(who == "no ECU" ? "responds to" : "does not respond to") \(String(decoding: hexText(request), as: UTF8.self))"
    return "\(who) \(what)\(status == .noData ? "" : ": \(status.message)")"
  }
}
