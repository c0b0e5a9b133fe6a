// Decides what is polled when: the fast request (FastPoll.swift) at each slot of an absolute grid, other requests in the gaps, and nothing
// during pauses. A fast request that fails is replaced by another request, and is then retried in the gaps.
//
//   waiting ─ slot ─▶ polling ──── answered or failed ──▶ waiting ─ pause ─▶ paused ─ due ─▶ waiting
//      └─ gap ─▶ requesting ─┘

struct PollScheduler: Sendable {
  enum State: Sendable {
    /// The next poll waits for its slot.
    case waiting
    /// A poll is in flight.
    case polling(Poll)
    /// A request of the queue is in flight.
    case requesting(Int, sent: Instant)
    /// Polling is paused until this time, or until the link comes up again if nil.
    case paused(until: Instant?)
  }

  /// The poll in flight.
  struct Poll: Sendable {
    let sent: Instant
    /// The delay after its slot; nil if it had no slot.
    let lateness: Nanoseconds?
    /// Whether the request carried a frame count.
    let hasFrameCount: Bool
    /// Whether the next slot came before the reply.
    fileprivate(set) var isOverdue = false
  }

  private(set) var state = State.waiting
  private(set) var pace: Pace
  private(set) var fast: FastPoll
  private(set) var queue = RequestQueue()
  private var errors = PollFailureCounters()
  private(set) var statistics: PollStatistics

  init(rate: Double, phase: Double, first request: FastRequest) {
    pace = Pace(rate: rate, phase: phase)
    statistics = PollStatistics(period: pace.period)
    fast = FastPoll(request)
  }

  /// Whether the vehicle has answered the fast request on this connection.
  var isConfirmed: Bool { errors.isConfirmed }
  /// Whether a failing fast request may be replaced. False after several replacements, when another one would not help.
  var canReplace: Bool { fast.pollsPIDs && errors.canReplace }

  // MARK: Connection and vehicle

  /// Resets state and failures: the link has come up, or other requests are polled from now on.
  mutating func reset() {
    state = .waiting
    errors = PollFailureCounters()
  }

  /// Handles the end of a setup of the adapter, which invalidates earlier timing.
  mutating func adapterReady(isProbing: Bool, at now: Instant) {
    queue.reset()
    pace.begin(at: now)
    // A setup does not end a pause.
    state = isProbing ? .paused(until: now) : .waiting
  }

  /// Handles the loss of the request in flight.
  mutating func interrupted() {
    state = .waiting
    statistics.reset()
  }

  /// Polls the request of a protocol candidate.
  mutating func begin(_ request: FastRequest) {
    fast.begin(request)
    setPeriod(fast.currentPeriod)
  }

  /// Polls a request that has never been answered.
  mutating func tryOther(_ request: FastRequest) {
    errors.candidateBegan()
    begin(request)
  }

  /// Requests the next supported PIDs.
  mutating func proceed(to request: FastRequest, at now: Instant) {
    fast.proceed(to: request)
    resume(at: now)
  }

  /// Handles the end of discovery: the ECUs have reported all supported PIDs.
  mutating func discoveryEnded() { errors.resetReplacements() }

  /// Polls the fast request of a detected vehicle, at its configured period or the device's rate.
  mutating func begin(_ request: FastRequest, every period: Nanoseconds?) {
    fast.begin(request, every: period)
    setPeriod(period)
  }

  /// Polls these requests.
  mutating func apply(_ placed: ValueTable.PlacedRequests) {
    fast.setRows(placed.fastRows)
    queue.replace(with: placed.requests)
  }

  /// Polls the first request of a repeated detection.
  mutating func restartDetection(with request: FastRequest) {
    begin(request)
    errors = PollFailureCounters()
  }

  /// Polls with this period, or at the device's rate if it is nil.
  private mutating func setPeriod(_ period: Nanoseconds?) {
    if pace.limitRate(toOnePollPer: period) { statistics.changePeriod(to: pace.period) }
  }

  // MARK: Sending

  /// When the next request or the end of a pause is due; nil while a request is in flight, or if the pause lasts until the link comes up.
  func nextWake(after now: Instant) -> Instant? {
    switch state {
    // Due requests that do not fit into the gap wait for the next response to the fast request.
    case .waiting: queue.nextDue > now ? min(pace.due, queue.nextDue) : pace.due
    case .paused(let until): until
    case .polling, .requesting: nil
    }
  }

  /// The next slot, at which the poll in flight becomes overdue; nil if it cannot become overdue, or already is. The timer is set for this
  /// time when the poll is sent. The next poll is due at the same time, so the timer usually need not be set again.
  var overdueAt: Instant? {
    if case .polling(let poll) = state, pace.period > 0, !poll.isOverdue { pace.due } else { nil }
  }

  /// Marks the poll in flight as overdue if its next slot has come.
  mutating func markOverdue(at now: Instant) {
    guard case .polling(var poll) = state, now >= pace.due else { return }
    poll.isOverdue = true
    state = .polling(poll)
  }

  /// The index of the queued request to send now, or nil if none fits. At its slot, the fast request takes precedence over all but forced
  /// requests.
  func pick(at now: Instant, _ adapter: RequestQueue.AdapterState) -> Int? {
    guard now < pace.due || queue.hasForced(at: now), errors.isConfirmed else { return nil }
    return queue.pick(at: now, gap: max(pace.due &- now, 0), adapter)
  }

  mutating func endForcedWindow() { queue.endForcedWindow() }

  /// Begins a review of the properties at these positions, or returns false if no request has one of them.
  mutating func beginReview(of positions: Set<Int>) -> Bool { queue.beginReview(of: positions) }
  /// Whether requests of a review are still to be sent.
  var isReviewing: Bool { queue.nextReviewed != nil }

  /// Begins a poll of the fast request, and returns the bytes to send. `allowsFrameCount`: they may include the frame count.
  mutating func beginPoll(allowsFrameCount: Bool, at now: Instant) -> [UInt8] {
    statistics.recordSent()
    // While the durations of the queued requests are being measured, polls may be late; this lateness is not counted.
    if !queue.isMeasured, pace.period > 0 { pace.begin(at: now) }
    state = .polling(Poll(sent: now, lateness: pace.recordPoll(at: now), hasFrameCount: allowsFrameCount && fast.frameCount.frames != nil))
    return fast.bytes(allowsFrameCount: allowsFrameCount)
  }

  /// Begins a queued request; the caller sends it.
  mutating func beginRequest(_ index: Int, at now: Instant, _ adapter: RequestQueue.AdapterState) {
    queue.recordSent(index, at: now, gap: max(pace.due &- now, 0), adapter)
    state = .requesting(index, sent: now)
  }

  mutating func retargeted(took: Nanoseconds) { queue.recordRetargeting(took: took) }

  // MARK: Pauses

  mutating func pause(until: Instant?) { state = .paused(until: until) }
  /// Ends a pause so that the voltage can be measured. Polling resumes only if the voltage allows it.
  mutating func endPause() { state = .waiting }

  /// Polls at once, then on the grid.
  mutating func resume(at now: Instant) {
    state = .waiting
    pace.begin(at: now)
  }

  /// Handles a response to the liveness check while polling was paused.
  mutating func vehicleResponded(at now: Instant) {
    errors.resetMissingResponses()
    pace.begin(at: now)
  }

  // MARK: Replies to the fast request

  /// Ends the poll in flight, whatever its reply.
  mutating func endPoll() { state = .waiting }

  /// Handles a response to the fast request. Returns true if it is the first response to this request on this connection.
  mutating func answered() -> Bool {
    defer {
      state = .waiting
      errors.recordResponse()
    }
    return !errors.isConfirmed
  }

  /// Completes a poll whose values were published.
  mutating func finish(_ poll: Poll, isFirst: Bool, at now: Instant) {
    queue.fastRequestAnswered(afterSilence: isFirst, isLate: pace.period == 0 || now >= pace.due, at: now)
    statistics.recordResponse(at: now, roundTrip: max(now &- poll.sent, 0), lateness: poll.lateness)
  }

  /// Records the ECU that answered the fast request. `frames` is the number of frames, or nil if it must not be used as the frame count.
  mutating func recordResponse(frames: Int?, from source: UInt32?) { fast.recordResponse(frames: frames, from: source) }

  /// Counts a response with this many of the requested PIDs. If PIDs are missing repeatedly, the first PID is polled alone, and the others
  /// are requested in the gaps.
  mutating func recordCompleteness(_ completeness: ValueTable.Completeness) {
    guard fast.request.parameters.count > 1 else { return }
    if errors.recordCompleteness(completeness) { splitFast() }
  }

  /// Ends a poll without values. In back-to-back mode, a short pause follows.
  mutating func pollFailed(at now: Instant) {
    state = .waiting
    pace.failed(at: now, retriesSoon: !errors.isConfirmed)
  }

  /// Ends the request in flight, because its reply is missing or too long. `isRepeated`: the request did not cause the failure and is sent
  /// again immediately.
  mutating func abort(isRepeated: Bool, at now: Instant) {
    switch state {
    case .polling(let poll):
      pollFailed(at: now)
      // The frame count may be wrong.
      if poll.hasFrameCount { fast.dropFrameCount() }
    case .requesting(let index, let sent):
      state = .waiting
      queue.recordAbort(index, took: max(now &- sent, 0), isRepeated: isRepeated, at: now)
    case .waiting, .paused: break
    }
  }

  /// Drops the frame count if it may have caused this failure. Returns whether the request must be repeated without it.
  mutating func dropFrameCount(after failure: PollFailure) -> Bool {
    switch failure {
    case .status(.notUnderstood):
      fast.disableFrameCount()
      return true
    case .status(.noData), .negative(0x11), .negative(0x12), .negative(0x13), .negative(0x31):
      fast.dropFrameCount()
      return true
    case .unusable, .malformed:
      fast.dropFrameCount()
      return false
    case .status(let status):
      if status.consequence == .discard || status.consequence == .resynchronise || status.consequence == .acknowledge {
        fast.dropFrameCount()
      }
      return false
    case .negative: return false
    }
  }

  /// Counts a failure of the fast request, and returns its consequence. `isProbing`: polling is paused, except for this probe.
  mutating func recordFailure(_ failure: PollFailure, isProbing: Bool, hasLostEcho: Bool, on bus: OBDProtocol) -> PollConsequence {
    errors.recordFailure(failure, &fast, isProbing: isProbing, hasLostEcho: hasLostEcho, on: bus)
  }

  // MARK: Replacement of the fast request

  /// Splits or replaces a fast request that fails although the vehicle responds. `timeoutHasChanged`: the adapter's default timeout is used
  /// again, so the same request is tried once more. `isReplaced` is false if no request is left. `failed` is the replaced request, which is
  /// retried in the gaps.
  mutating func replaceFast(timeoutHasChanged: Bool, at now: Instant) -> (isReplaced: Bool, failed: PollRequest?) {
    var failed: PollRequest?
    if timeoutHasChanged {
      // The same request is polled again.
    } else if fast.request.parameters.count > 1 {
      splitFast()
      fast.beginOnePIDTest()
    } else {
      guard let next = queue.successor else { return (false, nil) }
      fast.endOnePIDTest()
      setFast(queue.exchange(next, with: fast.asPollRequest(defaultPeriod: pace.period), failedAt: now))
      failed = queue.requests[next]
    }
    errors.recordReplacement()
    return (true, failed)
  }

  /// Makes this the fast request, at the device's rate or its configured period.
  private mutating func setFast(_ request: PollRequest) {
    fast.replace(with: request)
    setPeriod(fast.period)
  }

  /// Polls the first PID alone; the others follow in the queue.
  private mutating func splitFast() {
    let whole = fast.asPollRequest(defaultPeriod: pace.period)
    queue.append(whole.requesting(only: fast.request.parameters.dropFirst()))
    setFast(whole.requesting(only: fast.request.parameters.prefix(1)))
  }

  /// Polls a former fast request at the device's rate again, because it is answered again. If the current fast request has a configured
  /// period, the two are exchanged. Otherwise, they are merged if they go to the same ECU and have at most `maxPIDs` PIDs together.
  mutating func restoreFast(_ index: Int, maxPIDs: Int) {
    guard fast.pollsPIDs, fast.livenessCheckReason == nil else { return }
    queue.markRestored(index)
    let current = fast.asPollRequest(defaultPeriod: pace.period)
    if fast.period != nil { return setFast(queue.exchange(index, with: current, failedAt: nil)) }
    let restored = queue.requests[index]
    let parameters = (fast.request.parameters + restored.parameters).sorted { $0.number < $1.number }
    guard restored.usesDeviceRate, restored.target == fast.request.target, parameters.count <= maxPIDs else { return }
    _ = queue.remove(index)
    setFast(
      PollRequest(
        restored.target, restored.request, parameters: parameters, period: restored.period, rows: fast.rows + restored.rows,
        usesDeviceRate: true))
  }

  /// Ends the test of whether the ECU supports only one PID per request.
  mutating func endOnePIDTest() { fast.endOnePIDTest() }

  /// Polls a request that all ECUs support, to check whether the vehicle responds.
  mutating func beginLivenessCheck(_ message: String, on bus: OBDProtocol) { _ = fast.beginLivenessCheck(message, on: bus) }

  /// Resumes the fast request. Returns the failure that led to the check, or nil if no check was in progress.
  mutating func endLivenessCheck() -> String? { fast.endLivenessCheck() }

  /// Handles a vehicle that does not respond to any request.
  mutating func vehicleSilent() { errors.resetReplacements() }

  // MARK: Other requests

  /// Handles the reply to a queued request.
  mutating func requestReplied(
    _ index: Int, sent: Instant, _ parsed: ReplyReader.Outcome, _ session: some AdapterDialogue, at now: Instant,
    _ values: inout ValueTable,
    _ effects: inout Effects
  ) -> RequestOutcome {
    state = .waiting
    let request = queue.requests[index]
    let outcome = queue.handleReply(index, took: max(now &- sent, 0), parsed, session, at: now, &values, &effects)
    guard request.usesDeviceRate else { return outcome }
    // A PID of the fast request was requested alone.
    switch outcome {
    case .answered(let completeness, _): fast.recordSinglePID(isAnswered: completeness == .all)
    case .missed: fast.recordSinglePID(isAnswered: false)
    case .settingsLost, .rejectsSTPX, .unusable, .identified: break
    }
    return outcome
  }

  /// Stops the requests to an ECU that the adapter cannot address, and returns them.
  mutating func stopRequests(to target: Target?, _ message: String) -> [PollRequest] { queue.stopRequests(to: target, message) }

  /// Requests the identification of the vehicle again.
  mutating func identifyAgain() { queue.identifyAgain() }
  /// Requests all other properties at once, because they may have changed.
  mutating func requestAllNow(at now: Instant) { queue.requestAllNow(at: now) }

  // MARK: Statistics

  mutating func resetStatistics() { statistics.reset() }

  mutating func publishMeasurements(at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    statistics.publish(missed: pace.missed, at: now, values, &effects)
  }

  mutating func publishCounters(at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    statistics.publishCounters(missed: pace.missed, at: now, values, &effects)
  }
}
