// When what a car of the emission standard is polled for is not answered, or not as the standard says, it may fail alone while everything
// else is there: another request is polled instead, and this one is asked beside it until it takes its place again. Whether the vehicle is
// silent as a whole tells the question that every controller knows.

extension OBDMachine {
  /// What it means that parameters are not answered together.
  enum FailsTogether {
    case no
    /// They are asked one by one to find out.
    case open
    /// Each is answered alone: their controller answers one at a time.
    case proven
  }

  /// So many requests fail one after the other before it is the vehicle's fault.
  private static let maxYielding = 6
  private static let unanswered = "the vehicle does not respond to this request"

  var pollsParameters: Bool { if case .standard = vehicle { !request.parameters.isEmpty } else { false } }

  /// What is polled, as it would be asked beside something else.
  private var primaryInquiry: Inquiry {
    let period = max(fastPeriod ?? pace.period, .second / 20)
    var inquiry = Inquiry(request.target, request.bytes, parameters: request.parameters, period: period)
    (inquiry.rows, inquiry.isFast) = (primary, fastPeriod == nil)
    return inquiry
  }

  /// This is polled from now on, at the device's rate or as often as it is wanted.
  private mutating func poll(_ inquiry: Inquiry) {
    (primary, fastPeriod) = (inquiry.rows, inquiry.isFast ? nil : inquiry.period)
    follow(fastPeriod)
    timetable.settle()
    ask(PageRequest(inquiry.parameters, of: inquiry.target))
    fastRequest = request
  }

  private mutating func ask(_ next: PageRequest) {
    (request, count, answerer) = (next, FrameCount(), nil)
    writePollBytes()
  }

  /// The first parameter is polled, the others are asked beside it.
  mutating func splitFast() {
    let whole = primaryInquiry
    timetable.inquiries.append(whole.asking(for: request.parameters.dropFirst()))
    poll(whole.asking(for: request.parameters.prefix(1)))
  }

  /// What is polled is not answered although the vehicle is there: its parameters are asked one by one, or something else is polled. False
  /// where nothing is left.
  mutating func makeWay(_ words: String, at now: Instant, _ effects: inout Effects) -> Bool {
    guard pollsParameters, streaks.madeWay < Self.maxYielding else { return false }
    if tuning == nil, timings.usual != .initial {
      // What was tuned may be too quick for what is there now.
      timings.usual = .initial
    } else if request.parameters.count > 1 {
      splitFast()
      failsTogether = .open
    } else {
      guard let next = timetable.successor else { return false }
      failsTogether = .no
      exchange(next)
      timetable.inquiries[next].makeWay(at: now)
      timetable.settle()
      withdraw(next, words, &effects)
    }
    streaks.madeWay += 1
    (streaks.silences, streaks.misfits, streaks.negatives, streaks.busy) = (0, 0, 0, 0)
    (streaks.unusable, streaks.spoilt, streaks.disturbances) = (0, 0, 0)
    return true
  }

  /// This question is polled, and what was polled is asked in its stead.
  private mutating func exchange(_ index: Int) {
    let old = primaryInquiry
    let new = timetable.inquiries[index]
    timetable.inquiries[index] = old
    poll(new)
  }

  /// What had made way is answered again: it is polled, beside what shares its rate or instead of what does not.
  mutating func takeItsPlace(_ index: Int) {
    guard pollsParameters, doubt == nil, case .standard(let found) = vehicle else { return }
    timetable.inquiries[index].takesItsPlace()
    if fastPeriod != nil { return exchange(index) }
    let back = timetable.inquiries[index]
    let parameters = (request.parameters + back.parameters).sorted { $0.number < $1.number }
    guard back.isFast, back.target == request.target, parameters.count <= (bus.isCAN ? found.most : 1) else { return }
    timetable.inquiries.remove(at: index)
    var both = Inquiry(back.target, back.request, parameters: parameters, period: back.period)
    (both.rows, both.isFast) = (primary + back.rows, true)
    poll(both)
  }

  /// A parameter that was polled together with another one was asked alone.
  mutating func askedAlone(_ inquiry: Inquiry, isAnswered: Bool) {
    if inquiry.isFast, failsTogether == .open { failsTogether = isAnswered ? .proven : .no }
  }

  /// Each is answered and all together are not: their controller answers one at a time, which is remembered.
  mutating func askOneByOne(at now: Instant, _ effects: inout Effects) {
    failsTogether = .no
    guard case .standard(var found) = vehicle, found.most > 1 else { return }
    found.most = 1
    streaks = Streaks()
    _ = recognise(found, &effects)
    pace.begin(at: now)
  }

  // MARK: Doubt

  /// Asks what every controller knows in place of what is polled. False where that would tell nothing.
  mutating func beginDoubt(_ words: String) -> Bool {
    guard pollsParameters, request == fastRequest else { return false }
    doubt = words
    ask(PageRequest(supportedFrom: 0, on: bus))
    return true
  }

  /// What is polled is asked again. Gives why it was in doubt, if it was.
  mutating func endDoubt() -> String? {
    guard let words = doubt, let fastRequest else { return nil }
    doubt = nil
    ask(fastRequest)
    return words
  }

  /// Somebody is there. Of a vehicle that was left alone that is news; of another one it tells that the request is at fault.
  mutating func doubtAnswered(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    guard !reader.bitmaps(base: 0).isEmpty else { return failed(.unusable("response to another request"), poll, at: now, &effects) }
    dialogue.isInStep()
    state = .polling
    guard let words = endDoubt() else { return }
    if isProbing {
      (isProbing, streaks.silences) = (false, 0)
      pace.begin(at: now)
    } else if !makeWay(Self.unanswered, at: now, &effects) {
      backOff(words, at: now, &effects)
    }
  }

  /// Nobody answers that either: the vehicle is silent. False where something else is wrong.
  mutating func doubtFailed(_ failure: Failure, _ words: String, at now: Instant, _ effects: inout Effects) -> Bool {
    switch failure {
    case .status(let status) where status.demand == .wait || status.demand == .backOff: backOff(words, at: now, &effects)
    case .negative: if !makeWay(Self.unanswered, at: now, &effects) { backOff(words, at: now, &effects) }
    default: return false
    }
    return true
  }

  /// The vehicle answers something else than the standard says: time and again, or now.
  mutating func misfit(_ reason: String, at now: Instant, _ effects: inout Effects) {
    streaks.misfits += 1
    guard streaks.misfits >= 3, makeWay(reason, at: now, &effects) else {
      return unusable(reason, resynchronising: false, at: now, &effects)
    }
    keepBadReply(dialogue.reply, &effects)
  }
}
