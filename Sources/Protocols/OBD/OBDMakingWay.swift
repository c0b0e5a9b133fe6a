// Fallback of the fast request of an SAE J1979 vehicle: if it is not answered, or not correctly, another one is polled while it is retried
// beside. The request that all ECUs support shows whether the vehicle is silent as a whole.

extension OBDMachine {
  /// The meaning of PIDs that are not answered together.
  enum FailsTogether {
    case no
    /// They are being requested one by one to find out.
    case open
    /// Each is answered alone: the ECU supports one PID per request.
    case proven
  }

  /// The number of failing requests before the vehicle as a whole counts as silent.
  private static let maxYielding = 6
  private static let unanswered = "the vehicle does not respond to this request"

  var pollsParameters: Bool { if case .standard = vehicle { !request.parameters.isEmpty } else { false } }

  /// The fast request as an inquiry of the requestQueue.
  private var primaryInquiry: PollRequest {
    let period = max(fastPeriod ?? pace.period, .second / 20)
    return PollRequest(
      request.target, request.bytes, parameters: request.parameters, period: period, rows: primary, isFast: fastPeriod == nil)
  }

  /// Makes this the fast request, at the device's rate or its configured period.
  private mutating func poll(_ inquiry: PollRequest) {
    (primary, fastPeriod) = (inquiry.rows, inquiry.isFast ? nil : inquiry.period)
    follow(fastPeriod)
    ask(RecordRequest(inquiry.parameters, of: inquiry.target))
    fastRequest = request
  }

  private mutating func ask(_ next: RecordRequest) {
    (request, count, answerer) = (next, FrameCount(), nil)
    writePollBytes()
  }

  /// Polls the first PID alone; the others follow in the requestQueue.
  mutating func splitFast() {
    let whole = primaryInquiry
    requestQueue.append(whole.asking(for: request.parameters.dropFirst()))
    poll(whole.asking(for: request.parameters.prefix(1)))
  }

  /// Splits or replaces a fast request that fails although the vehicle responds. Returns false if no request is left.
  mutating func makeWay(_ message: String, at now: Instant, _ effects: inout Effects) -> Bool {
    guard pollsParameters, errors.madeWay < Self.maxYielding else { return false }
    if tuning == nil, timings.usual != .initial {
      // The tuned timeout may be too short for the remaining ECUs.
      timings.usual = .initial
    } else if request.parameters.count > 1 {
      splitFast()
      failsTogether = .open
    } else {
      guard let next = requestQueue.successor else { return false }
      failsTogether = .no
      poll(requestQueue.exchange(next, with: primaryInquiry, failedAt: now))
      values.withdraw(requestQueue.requests[next], message, &effects)
    }
    errors.madeWay += 1
    (errors.silences, errors.misfits, errors.negatives, errors.busy) = (0, 0, 0, 0)
    (errors.unusable, errors.spoilt, errors.disturbances) = (0, 0, 0)
    return true
  }

  /// Restores a request that is answered again, beside the one that shares its rate or instead of it.
  mutating func takeItsPlace(_ index: Int) {
    guard pollsParameters, doubt == nil, case .standard(let found) = vehicle else { return }
    requestQueue.restored(index)
    if fastPeriod != nil { return poll(requestQueue.exchange(index, with: primaryInquiry, failedAt: nil)) }
    let back = requestQueue.requests[index]
    let parameters = (request.parameters + back.parameters).sorted { $0.number < $1.number }
    guard back.isFast, back.target == request.target, parameters.count <= (bus.isCAN ? found.most : 1) else { return }
    _ = requestQueue.remove(index)
    poll(
      PollRequest(
        back.target, back.request, parameters: parameters, period: back.period, rows: primary + back.rows, isFast: true))
  }

  /// Records that a PID of the fast request was answered alone.
  mutating func askedAlone(_ inquiry: PollRequest, isAnswered: Bool) {
    if inquiry.isFast, failsTogether == .open { failsTogether = isAnswered ? .proven : .no }
  }

  /// Each PID is answered alone but not together: one PID per request, which is stored.
  mutating func askOneByOne(at now: Instant, _ effects: inout Effects) {
    failsTogether = .no
    guard case .standard(var found) = vehicle, found.most > 1 else { return }
    found.most = 1
    errors = ErrorCounters()
    _ = recognise(found, &effects)
    pace.begin(at: now)
  }

  // MARK: Doubt

  /// Sends the request that all ECUs support instead of the fast one. Returns false if that cannot help.
  mutating func beginDoubt(_ message: String) -> Bool {
    guard pollsParameters, request == fastRequest else { return false }
    doubt = message
    ask(RecordRequest(supportedFrom: 0, on: bus))
    return true
  }

  /// Resumes the fast request. Returns why it was in doubt, if it was.
  mutating func endDoubt() -> String? {
    guard let message = doubt, let fastRequest else { return nil }
    doubt = nil
    ask(fastRequest)
    return message
  }

  /// The vehicle responds. If it was paused, polling resumes; otherwise the fast request is at fault.
  mutating func doubtAnswered(_ poll: Poll, at now: Instant, _ effects: inout Effects) {
    guard !reader.bitmaps(base: 0).isEmpty else { return failed(.unusable("response to another request"), poll, at: now, &effects) }
    dialogue.isInStep()
    state = .polling
    guard let message = endDoubt() else { return }
    if isProbing {
      (isProbing, errors.silences) = (false, 0)
      pace.begin(at: now)
    } else if !makeWay(Self.unanswered, at: now, &effects) {
      backOff(message, at: now, &effects)
    }
  }

  /// No ECU responds to that either: the vehicle is silent. Returns false if there is another cause.
  mutating func doubtFailed(_ failure: Failure, _ message: String, at now: Instant, _ effects: inout Effects) -> Bool {
    switch failure {
    case .status(let status) where status.demand == .wait || status.demand == .backOff: backOff(message, at: now, &effects)
    case .negative: if !makeWay(Self.unanswered, at: now, &effects) { backOff(message, at: now, &effects) }
    default: return false
    }
    return true
  }

  /// Handles a response that violates SAE J1979, repeatedly or now.
  mutating func misfit(_ reason: String, at now: Instant, _ effects: inout Effects) {
    errors.misfits += 1
    guard errors.misfits >= 3, makeWay(reason, at: now, &effects) else {
      return unusable(reason, resynchronising: false, at: now, &effects)
    }
    values.countBadReply(dialogue.reply, &effects)
  }
}
