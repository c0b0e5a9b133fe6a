// The queue of all requests other than the fast request (FastPoll.swift). They are sent in the gaps between fast requests. A due request is
// sent only if it can complete, including retargeting, before the next slot. Of several such requests, the one with the highest priority is
// sent first, then one to the current target of the adapter, then the one with the earliest deadline. A request that never fits is forced
// once it is late by one period, or by 1 s if its period is shorter: it is sent although it delays the fast request. A retry after the
// first lost response, or after a silence, is forced as soon as it is due. Usually at most one request per second is forced.

struct RequestQueue: Sendable {
  private(set) var requests: [PollRequest] = []
  /// The expected time to retarget the adapter, from recent measurements.
  private(set) var retargetDuration: Nanoseconds = 12 * .millisecond
  /// The earliest due time of all requests.
  private(set) var nextDue: Instant = .max
  /// Whether the duration of every request has been measured (`PollRequest.isMeasured`).
  private(set) var isMeasured = true
  private var lastForced: Instant = .min
  /// Whether the fast request takes longer than its period, so that there are no gaps.
  private var hasNoGaps = false
  /// Whether a request may be forced, because none has been sent since the last response to the fast request. Requests at the device's rate
  /// have `canForceAlternate` instead.
  private var canForce = false
  /// Whether a request at the device's rate, which alternates with the fast request, may be forced, because none has been sent since the
  /// last response to the fast request.
  private var canForceAlternate = false
  /// The requests of a review that are still to be sent.
  private var reviewed: [Int] = []

  /// The minimum time between the expected end of a request and the next slot.
  private static let margin: Nanoseconds = 2 * .millisecond
  /// The minimum interval between forced requests.
  private static let forcedInterval: Nanoseconds = .second
  /// The interval at which a rejected request is tried again.
  private static let rejectionLifetime: Nanoseconds = 600 * .second
  /// The interval at which reported scaling is requested again.
  private static let scalingLifetime: Nanoseconds = 600 * .second
  /// The time after which a request to a busy ECU is repeated.
  private static let busyPause: Nanoseconds = 100 * .millisecond

  /// Recomputes `nextDue` and `isMeasured`.
  private mutating func update() {
    nextDue = requests.lazy.map(\.due).min() ?? .max
    isMeasured = requests.allSatisfy(\.isMeasured)
  }

  /// Sets the requests of a vehicle.
  mutating func replace(with requests: [PollRequest]) {
    self.requests = requests
    reset()
  }

  /// Resets all requests for a new connection.
  mutating func reset() {
    for index in requests.indices { requests[index].reset() }
    (lastForced, canForce) = (.min, false)
    reviewed = []
    update()
  }

  // MARK: Review

  /// Begins a review of the properties at these positions: each request for one of them is sent once, whether or not it is due. Returns
  /// false if there are none.
  mutating func beginReview(of positions: Set<Int>) -> Bool {
    reviewed = requests.indices.filter { index in
      if case .rejected = requests[index].support { return false }
      return requests[index].rows.contains { positions.contains($0.position) }
    }
    return !reviewed.isEmpty
  }

  /// The index of the next request of a review, or nil if all have been sent.
  var nextReviewed: Int? { reviewed.first }

  /// Handles a response to the fast request, after which a request that does not fit may be forced. `afterSilence`: it is the first
  /// response after a silence, so all unanswered requests become due. `isLate`: the next slot has passed.
  mutating func fastRequestAnswered(afterSilence: Bool, isLate: Bool, at now: Instant) {
    (canForce, canForceAlternate) = (true, true)
    hasNoGaps = isLate
    guard afterSilence else { return }
    for index in requests.indices where requests[index].misses > 0 { requests[index].retry(at: now) }
    update()
  }

  /// Makes every previously answered request late, because its values may have changed: it is forced if it does not fit.
  mutating func requestAllNow(at now: Instant) {
    for index in requests.indices where requests[index].support == .answered {
      requests[index].setDue(now &- max(requests[index].period, .second))
    }
    update()
  }

  /// Ends the window in which a request may be forced, because none was started right after the response to the fast request. A request
  /// forced later would delay the fast request by its full duration.
  mutating func endForcedWindow() { canForce = false }

  /// Records the duration of retargeting the adapter.
  mutating func recordRetargeting(took: Nanoseconds) {
    retargetDuration = took > retargetDuration ? took : retargetDuration - (retargetDuration - took) / 8
  }

  /// The state of the adapter on which the choice of a request depends.
  struct AdapterState {
    /// The current addressing, or nil if it is unknown.
    let addressing: ECUAddressing?
    /// The addressing that the fast request needs, and to which the adapter must return.
    let fastAddressing: ECUAddressing
    /// Whether the adapter supports STPX and uses its default filter at `fastAddressing`.
    let supportsSTPX: Bool
    /// Whether every request carries its address, so that nothing must be retargeted.
    let isFrameInterface: Bool

    /// Whether the adapter is set to the target of this request.
    func isAt(_ request: PollRequest) -> Bool {
      isFrameInterface || request.target == addressing?.target && !request.usesLongTimeout
    }

    /// Whether the request can be sent with STPX. A functional request cannot: the adapter would wait for the message of one ECU only.
    func canUseSTPX(for request: PollRequest) -> Bool {
      supportsSTPX && addressing == fastAddressing && request.target.passesDefaultFilter
        && fastAddressing.bus.adapted(to: request.target) == fastAddressing.bus
    }

    /// How many times the adapter must be retargeted for this request, including back to `fastAddressing`.
    func retargetCount(for request: PollRequest) -> Int64 {
      isFrameInterface
        ? 0
        : isAt(request) || canUseSTPX(for: request)
          ? addressing == fastAddressing ? 0 : 1
          : request.target == fastAddressing.target && !request.usesLongTimeout ? 1 : 2
    }
  }

  /// The index of the request to send now, or nil if none fits. It must complete, with the adapter back at `fastAddressing`, within `gap`,
  /// the time before the next slot.
  func pick(at now: Instant, gap: Nanoseconds, _ adapter: AdapterState) -> Int? {
    guard now >= nextDue else { return nil }
    var best: Int?
    var bestRank: (Priority, Int, Instant) = (.low, 0, 0)
    for index in requests.indices where requests[index].due <= now {
      let request = requests[index]
      guard fits(request, into: gap, adapter) || isForced(request, at: now) else { continue }
      // Requests at the current target come first, to avoid retargeting twice.
      let rank = (
        request.priority, adapter.isAt(request) && adapter.addressing != adapter.fastAddressing ? 0 : 1,
        request.due == .min || request.isRetriedSoon ? request.due : request.due &+ request.period
      )
      if best == nil || rank < bestRank { (best, bestRank) = (index, rank) }
    }
    return best
  }

  /// Whether the request can complete in this time, with the adapter back at the addressing of the fast request.
  private func fits(_ request: PollRequest, into gap: Nanoseconds, _ adapter: AdapterState) -> Bool {
    request.duration &+ request.duration / 8 &+ adapter.retargetCount(for: request) &* retargetDuration &+ Self.margin <= gap
  }

  /// Whether the request is sent although it delays the fast request.
  private func isForced(_ request: PollRequest, at now: Instant) -> Bool {
    if request.usesDeviceRate { return canForceAlternate }
    guard canForce else { return false }
    if !request.isMeasured { return true }
    // If the fast request leaves no gaps, the other requests get a fifth of the time.
    let interval = hasNoGaps ? min(4 &* request.duration, Self.forcedInterval) : Self.forcedInterval
    guard lastForced == .min || now &- lastForced >= interval else { return false }
    return request.due != .min && now &- request.due >= (hasNoGaps || request.isRetriedSoon ? 0 : max(request.period, .second))
  }

  /// Splits the PIDs of a request into two requests.
  private mutating func split(_ index: Int) {
    let whole = requests[index]
    let half = whole.parameters.count / 2
    requests[index] = whole.requesting(only: whole.parameters.prefix(half))
    requests.append(whole.requesting(only: whole.parameters.dropFirst(half)))
    update()
  }

  /// The index of the request that replaces a failing fast request: one at the device's rate, else one that was answered, else any other.
  var successor: Int? {
    let eligible = requests.indices.filter { index in
      let request = requests[index]
      if case .rejected = request.support { return false }
      return !request.parameters.isEmpty && !request.requestsScaling && request.misses == 0
    }
    return eligible.first { requests[$0].usesDeviceRate } ?? eligible.first { requests[$0].support == .answered } ?? eligible.first
  }

  /// Stops all requests for a target, and returns them.
  mutating func stopRequests(to target: Target?, _ message: String) -> [PollRequest] {
    let indices = requests.indices.filter { requests[$0].target == target }
    for index in indices { requests[index].recordRejection(message, until: .max) }
    update()
    return indices.map { requests[$0] }
  }

  /// Whether a due request is forced, that is, takes precedence over the fast request.
  func hasForced(at now: Instant) -> Bool {
    guard now >= nextDue else { return false }
    return requests.contains { $0.due <= now && isForced($0, at: now) }
  }

  /// Records that a request is sent now; `gap` is the time before the next slot.
  mutating func recordSent(_ index: Int, at now: Instant, gap: Nanoseconds, _ adapter: AdapterState) {
    if !fits(requests[index], into: gap, adapter), !requests[index].usesDeviceRate { lastForced = now }
    if requests[index].usesDeviceRate { canForceAlternate = false } else { canForce = false }
    requests[index].recordSent(at: now)
    reviewed.removeAll { $0 == index }
    update()
  }

  // MARK: Replies

  /// Handles the reply to a request: publishes its values, or counts a failure.
  mutating func handleReply(
    _ index: Int, took: Nanoseconds, _ parsed: ReplyReader.Outcome, _ session: some AdapterDialogue, at now: Instant,
    _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    defer { update() }
    switch parsed {
    case .messages: return handleResponse(index, took: took, session, at: now, &values, &effects)
    case .empty: return handleUnusableReply(index, "empty reply", took: took, at: now, &values, &effects)
    case .unreadable(let reason):
      return handleUnusableReply(index, reason, isUnreadable: true, took: took, at: now, &values, &effects)
    case .status(let status):
      switch status.consequence {
      case .reinitialise, .wake: return .settingsLost(status)
      case .noResponse, .backOff, .retry:
        return recordMiss(index, requests[index].message(for: status), took: took, at: now, &values, &effects)
      case .unsupported where session.usesSTPX:
        requests[index].setDue(now)
        return .rejectsSTPX
      case .unsupported:
        // The adapter does not support the frame count, or the length of the request.
        requests[index].disableFrameCount()
        return recordMiss(index, status.message, took: took, at: now, &values, &effects)
      case .discard, .resynchronise, .acknowledge, .ignore:
        return handleUnusableReply(index, status.message, took: took, at: now, &values, &effects)
      }
    }
  }

  private mutating func handleResponse(
    _ index: Int, took: Nanoseconds, _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    let (request, reader) = (requests[index], session.reader)
    let frames = reader.frameCount(from: request.target)
    switch request.evaluate(reader) {
    case .identity(let texts, let source):
      requests[index].recordResponse(at: now, took: took, frames: frames, from: source)
      let text = texts.joined(separator: ", ")
      if let row = request.rows.first { values.publish(.value(.string(text)), at: row.position, at: now, &effects) }
      return .identified(text)
    case .damagedIdentity:
      let message = "unreadable vehicle information"
      values.withdraw(request, message, &effects)
      return handleUnusableReply(index, message, took: took, at: now, &values, &effects)
    case .values(let data, let source):
      let completeness = values.publish(request.rows, request.parameters, reader, data, from: source, at: now, &effects)
      if completeness == .none {
        values.countBadReply(session.reply, &effects)
        if request.parameters.count == 1 {
          return recordMiss(index, "response length does not match SAE J1979", took: took, at: now, &values, &effects)
        }
      }
      requests[index].recordResponse(at: now, took: took, frames: frames, from: source)
      if request.requestsScaling {
        values.recordScales(reader)
        // The scaling does not change while the ECU runs.
        if completeness == .all { requests[index].setDue(now &+ Self.scalingLifetime) }
      }
      return .answered(completeness, isSplit: completeness != .all && request.parameters.count > 1 && recordPartialResponse(index))
    case .negative(let code): return handleNegativeResponse(index, code, took: took, at: now, &values, &effects)
    case .unusable(let reason): return handleUnusableReply(index, reason, took: took, at: now, &values, &effects)
    }
  }

  /// Counts a response with fewer PIDs than requested. If this happens repeatedly, splits the request and returns true.
  private mutating func recordPartialResponse(_ index: Int) -> Bool {
    requests[index].recordPartialResponse()
    guard requests[index].partialResponses >= 2 else { return false }
    split(index)
    return true
  }

  private mutating func handleNegativeResponse(
    _ index: Int, _ code: UInt8, took: Nanoseconds, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    let request = requests[index]
    let message = "the vehicle rejected the request (\(NegativeResponse.name(of: code)))"
    switch NegativeResponse.consequence(of: code) {
    case .tryOther where !request.usesDeviceRate && !request.isReplaced && !request.isBMSCheck:
      requests[index].recordRejection(message, until: now &+ Self.rejectionLifetime)
      values.withdraw(request, message, &effects)
    case .giveUp:
      requests[index].recordRejection(message, until: .max)
      values.withdraw(request, message, &effects)
    // The response came after the adapter's timeout: send the request again later, with the long timeout.
    case .pause where !request.usesLongTimeout: requests[index].useLongTimeout(due: now &+ Self.busyPause)
    case .repeatRequest where request.misses < 3: requests[index].postpone(to: now &+ Self.busyPause)
    case .tryOther, .repeatRequest, .pause, .backOff: return recordMiss(index, message, took: took, at: now, &values, &effects)
    }
    return .missed
  }

  /// Counts a request that was not answered, and withdraws its values if this happens repeatedly.
  private mutating func recordMiss(
    _ index: Int, _ message: String, took: Nanoseconds, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    requests[index].recordMiss(at: now, took: took)
    let request = requests[index]
    // A VIN is withdrawn at once: another vehicle may be connected. Values that were never received only get another reason.
    guard request.isUnanswered || request.isIdentity || request.support != .answered && request.misses >= 2 else { return .missed }
    values.withdraw(request, message, &effects)
    // The ECU may support fewer PIDs per request.
    if request.isUnanswered, request.support == .unknown, request.parameters.count > 1 { split(index) }
    return .missed
  }

  private mutating func handleUnusableReply(
    _ index: Int, _ reason: String, isUnreadable: Bool = false, took: Nanoseconds, at now: Instant, _ values: inout ValueTable,
    _ effects: inout Effects
  ) -> RequestOutcome {
    requests[index].recordMiss(at: now, took: took)
    if requests[index].isUnanswered { values.withdraw(requests[index], reason, &effects) }
    return .unusable(reason, isUnreadable: isUnreadable)
  }

  /// Counts a request whose reply is missing or too long. `isRepeated`: the request did not cause the failure and is sent again
  /// immediately.
  mutating func recordAbort(_ index: Int, took: Nanoseconds, isRepeated: Bool, at now: Instant) {
    requests[index].recordMiss(at: now, took: took)
    if isRepeated { requests[index].setDue(now) }
    update()
  }

  /// Requests the identification again, because the vehicle did not respond for some time and may be a different one.
  mutating func identifyAgain() {
    for index in requests.indices {
      let request = requests[index]
      guard request.isIdentity || request.isSupportCheck || request.isBMSCheck || request.requestsScaling else { continue }
      requests[index].resetSupport()
    }
    update()
  }

  // MARK: Exchange with the fast request

  mutating func append(_ request: PollRequest) {
    requests.append(request)
    update()
  }

  /// Replaces the request at `index` with `old`, the former fast request, and returns the replaced request. If `old` failed at `now`, it is
  /// retried soon.
  mutating func exchange(_ index: Int, with old: PollRequest, failedAt now: Instant?) -> PollRequest {
    let new = requests[index]
    requests[index] = old
    if let now { requests[index].markReplaced(at: now) }
    update()
    return new
  }

  /// Removes and returns a request that becomes part of the fast request.
  mutating func remove(_ index: Int) -> PollRequest {
    defer { update() }
    reviewed = []
    return requests.remove(at: index)
  }

  /// Records that a former fast request is answered again.
  mutating func markRestored(_ index: Int) { requests[index].markRestored() }
}
