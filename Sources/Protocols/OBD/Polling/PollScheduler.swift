// Decides what is polled when: the fast request at each slot of an absolute grid, the other requests in the gaps, and pauses. It counts the
// consecutive failures of the fast request and decides what each means; a failing request is replaced by the next one and retried beside it.
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
    /// The vehicle does not respond, or is left alone; nil: until the link comes up again.
    case paused(until: Instant?)
  }

  struct Poll: Sendable {
    let sent: Instant
    let lateness: Nanoseconds?
    /// The request carried a response-count digit.
    let isCounted: Bool
    /// The next slot came before the reply.
    fileprivate(set) var isOverdue = false
  }

  private(set) var state = State.waiting
  private(set) var pace: Pace
  private(set) var fast: FastPoll
  private(set) var queue = RequestQueue()
  private var errors = ErrorCounters()
  private(set) var statistics: PollStatistics

  init(rate: Double, phase: Double, first request: RecordRequest) {
    pace = Pace(rate: rate, phase: phase)
    statistics = PollStatistics(period: pace.period)
    fast = FastPoll(request)
  }

  /// The vehicle has answered the fast request on this connection.
  var isSettled: Bool { errors.isSettled }
  /// Requests have failed so often that another one would not help.
  var mayReplace: Bool { fast.pollsPIDs && errors.mayReplace }

  // MARK: Connection and vehicle

  /// Nothing is in flight, and no failure is counted: the link has come up, or other requests are polled from now on.
  mutating func startOver() {
    state = .waiting
    errors = ErrorCounters()
  }

  /// The adapter is set up; earlier timing is invalid.
  mutating func adapterReady(isProbing: Bool, at now: Instant) {
    queue.begin()
    pace.begin(at: now)
    // A paused vehicle is not polled more than before.
    state = isProbing ? .paused(until: now) : .waiting
  }

  /// Nothing is in flight any more.
  mutating func interrupted() {
    state = .waiting
    statistics.forget()
  }

  /// Polls the request of a protocol candidate.
  mutating func begin(_ request: RecordRequest) {
    fast.begin(request)
    follow(fast.currentPeriod)
  }

  /// Polls a request that was never answered.
  mutating func tryOther(_ request: RecordRequest) {
    errors.candidateBegins()
    begin(request)
  }

  /// Requests the next supported PIDs.
  mutating func proceed(to request: RecordRequest, at now: Instant) {
    fast.proceed(to: request)
    resume(at: now)
  }

  /// The ECUs have reported all supported PIDs.
  mutating func discoveryEnded() { errors.resetReplaced() }

  /// Polls the fast request of a detected vehicle, at its configured period or the device's rate.
  mutating func begin(_ request: RecordRequest, every period: Nanoseconds?) {
    fast.begin(request, every: period)
    follow(period)
  }

  mutating func place(_ layout: ValueTable.Layout) {
    fast.place(layout.fast)
    queue.replace(with: layout.requests)
  }

  /// Detection begins again with this request.
  mutating func startOver(_ request: RecordRequest) {
    begin(request)
    errors = ErrorCounters()
  }

  private mutating func follow(_ period: Nanoseconds?) {
    if pace.follow(period) { statistics.changePeriod(to: pace.period) }
  }

  // MARK: Sending

  /// The next slot, or the next request of the queue, while waiting.
  func nextWake(after now: Instant) -> Instant? {
    switch state {
    // Due requests that do not fit wait for the next response.
    case .waiting: queue.nextDue > now ? min(pace.due, queue.nextDue) : pace.due
    case .paused(let until): until
    case .polling, .requesting: nil
    }
  }

  /// When the next slot comes before the reply to the poll in flight; waiting for it from the start saves setting the timer twice per poll.
  var overdueAt: Instant? {
    if case .polling(let poll) = state, pace.period > 0, !poll.isOverdue { pace.due } else { nil }
  }

  mutating func woke(at now: Instant) {
    guard case .polling(var poll) = state, now >= pace.due else { return }
    poll.isOverdue = true
    state = .polling(poll)
  }

  /// The request of the queue to send now, if it fits. The fast request comes first at its slot, except for overdue requests.
  mutating func pick(at now: Instant, _ adapter: RequestQueue.AdapterAddressing) -> Int? {
    let room = pace.due &- now
    guard now < pace.due || queue.hasForced(at: now), errors.isSettled else { return nil }
    return queue.pick(at: now, room: max(room, 0), adapter)
  }

  mutating func nothingBegins() { queue.nothingBegins() }

  /// Sends the fast request: returns its bytes.
  mutating func poll(countsFrames: Bool, at now: Instant) -> [UInt8] {
    statistics.sent()
    // While the gaps are being measured, polls may be late.
    if !queue.isSurveyed, pace.period > 0 { pace.begin(at: now) }
    state = .polling(Poll(sent: now, lateness: pace.take(at: now), isCounted: countsFrames && fast.count.frames != nil))
    return fast.bytes(withCount: countsFrames)
  }

  /// Sends a request of the queue.
  mutating func request(_ index: Int, at now: Instant) {
    queue.asked(index, at: now, room: max(pace.due &- now, 0))
    state = .requesting(index, sent: now)
  }

  mutating func retargeted(took: Nanoseconds) { queue.retargeted(took: took) }

  // MARK: Pauses

  mutating func pause(until: Instant?) { state = .paused(until: until) }
  /// A pause has ended with a measurement; polling follows if the voltage allows.
  mutating func endPause() { state = .waiting }

  /// Polls at once, then on the grid.
  mutating func resume(at now: Instant) {
    state = .waiting
    pace.begin(at: now)
  }

  /// The paused vehicle responds to the request that all ECUs support.
  mutating func heard(at now: Instant) {
    errors.heard()
    pace.begin(at: now)
  }

  // MARK: Replies to the fast request

  /// The poll in flight has ended, whatever its reply.
  mutating func ended() { state = .waiting }

  /// The vehicle has answered. Returns whether it is the first answer since a silence.
  mutating func answered() -> Bool {
    defer {
      state = .waiting
      errors.answered()
    }
    return !errors.isSettled
  }

  /// The values of an answered poll are published.
  mutating func finish(_ poll: Poll, isFirst: Bool, at now: Instant) {
    queue.fastAnswered(afterSilence: isFirst, isLate: pace.period == 0 || now >= pace.due)
    statistics.answered(at: now, roundTrip: max(now &- poll.sent, 0), lateness: poll.lateness)
  }

  /// It was answered in this many frames, by this ECU.
  mutating func counted(frames: Int?, from source: UInt32?) { fast.answered(frames: frames, by: source) }

  /// If only some PIDs were answered, they are requested one by one.
  mutating func judge(_ share: ValueTable.Share) {
    guard fast.request.parameters.count > 1 else { return }
    if errors.isRepeatedlyShort(share) { splitFast() }
  }

  /// The poll brought no values: back to back, a pause follows.
  mutating func failed(at now: Instant) {
    state = .waiting
    pace.failed(at: now)
  }

  /// The adapter did not reply to the request in flight, or did not end its reply. `isRepeated`: for a reason that is not the request's.
  mutating func aborted(isRepeated: Bool, at now: Instant) {
    switch state {
    case .polling(let poll):
      failed(at: now)
      // The frame count may be wrong.
      if poll.isCounted { fast.dropCount() }
    case .requesting(let index, let sent):
      state = .waiting
      queue.aborted(index, took: max(now &- sent, 0), isRepeated: isRepeated, at: now)
    case .waiting, .paused: break
    }
  }

  /// An incomplete response to a request with a count may be due to the count. Drops it; returns whether the request must be repeated
  /// without it.
  mutating func doubtsCount(_ failure: PollFailure) -> Bool {
    switch failure {
    case .status(.notUnderstood):
      fast.countRefused()
      return true
    case .status(.noData), .negative(0x11), .negative(0x12), .negative(0x13), .negative(0x31):
      fast.dropCount()
      return true
    case .unusable, .misfit:
      fast.dropCount()
      return false
    case .status(let status):
      if status.demand == .discard || status.demand == .resynchronise || status.demand == .acknowledge { fast.dropCount() }
      return false
    case .negative: return false
    }
  }

  /// Counts a failure of the fast request and decides what follows. `isProbing`: polling is paused, except for this probe.
  mutating func judge(_ failure: PollFailure, isProbing: Bool, hasLostEcho: Bool, on bus: VehicleBus) -> PollConsequence {
    errors.judge(failure, &fast, isProbing: isProbing, hasLostEcho: hasLostEcho, on: bus)
  }

  // MARK: Fallback of the fast request

  /// Splits or replaces a fast request that fails although the vehicle responds; `isReset`: the adapter's default timeout is used again
  /// instead. Returns false if no request is left, and the request that is retried beside the new one.
  mutating func replaceFast(isReset: Bool, at now: Instant) -> (isReplaced: Bool, failed: PollRequest?) {
    var failed: PollRequest?
    if isReset {
    } else if fast.request.parameters.count > 1 {
      splitFast()
      fast.testOneByOne()
    } else {
      guard let next = queue.successor else { return (false, nil) }
      fast.endTest()
      poll(queue.exchange(next, with: fast.asPollRequest(at: pace.period), failedAt: now))
      failed = queue.requests[next]
    }
    errors.replaced()
    return (true, failed)
  }

  /// Makes this the fast request, at the device's rate or its configured period.
  private mutating func poll(_ request: PollRequest) {
    fast.replace(with: request)
    follow(fast.period)
  }

  /// Polls the first PID alone; the others follow in the queue.
  private mutating func splitFast() {
    let whole = fast.asPollRequest(at: pace.period)
    queue.append(whole.asking(for: fast.request.parameters.dropFirst()))
    poll(whole.asking(for: fast.request.parameters.prefix(1)))
  }

  /// Restores a request that is answered again, beside the one that shares its rate or instead of it; `most` is the maximum number of PIDs.
  mutating func restore(_ index: Int, most: Int) {
    guard fast.pollsPIDs, fast.doubt == nil else { return }
    queue.restored(index)
    let current = fast.asPollRequest(at: pace.period)
    if fast.period != nil { return poll(queue.exchange(index, with: current, failedAt: nil)) }
    let back = queue.requests[index]
    let parameters = (fast.request.parameters + back.parameters).sorted { $0.number < $1.number }
    guard back.isFast, back.target == fast.request.target, parameters.count <= most else { return }
    _ = queue.remove(index)
    poll(
      PollRequest(
        back.target, back.request, parameters: parameters, period: back.period, rows: fast.rows + back.rows, isFast: true))
  }

  /// It is known whether the PIDs are answered together.
  mutating func endTest() { fast.endTest() }

  /// Polls the request that all ECUs support, to find out whether the vehicle is silent.
  mutating func beginDoubt(_ message: String, on bus: VehicleBus) { _ = fast.beginDoubt(message, on: bus) }

  /// Resumes the fast request. Returns why it was in doubt, if it was.
  mutating func endDoubt() -> String? { fast.endDoubt() }

  /// The vehicle is silent as a whole.
  mutating func vehicleSilent() { errors.resetReplaced() }

  // MARK: Other requests

  /// Handles the reply to a request of the queue.
  mutating func requestReplied(
    _ index: Int, sent: Instant, _ parsed: CANReader.Outcome, _ session: AdapterSession, at now: Instant, _ values: inout ValueTable,
    _ effects: inout Effects
  ) -> RequestOutcome {
    state = .waiting
    let request = queue.requests[index]
    let outcome = queue.replied(index, took: max(now &- sent, 0), parsed, session, at: now, &values, &effects)
    guard request.isFast else { return outcome }
    // A PID of the fast request was requested alone.
    switch outcome {
    case .answered(let share, _): fast.requestedAlone(isAnswered: share == .whole)
    case .missed: fast.requestedAlone(isAnswered: false)
    case .settingsLost, .rejectsSTPX, .unusable, .identified: break
    }
    return outcome
  }

  /// The adapter cannot address this ECU. Returns its requests.
  mutating func refuse(_ target: Target?, _ message: String) -> [PollRequest] { queue.refuse(target, message) }

  mutating func identifyAgain() { queue.identifyAgain() }
  /// The vehicle has changed: its other properties are requested at once.
  mutating func hasten() { queue.hasten() }

  // MARK: Statistics

  mutating func forgetStatistics() { statistics.forget() }

  mutating func publishMeasurements(at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    statistics.publish(missed: pace.missed, at: now, values, &effects)
  }

  mutating func publishCounters(at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    statistics.publishCounters(missed: pace.missed, at: now, values, &effects)
  }
}
