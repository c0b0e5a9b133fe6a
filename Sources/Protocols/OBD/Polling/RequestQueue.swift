// Selects the request to send in the gaps of the fast request: earliest deadline first, if it completes, including retargeting, before the
// next slot. A request that never fits is sent once it is a period late, at most one per second.

struct RequestQueue: Sendable {
  private(set) var requests: [PollRequest] = []
  /// The recent duration of retargeting the adapter.
  private(set) var retargetCost: Nanoseconds = 12 * .millisecond
  /// The next due time of the requests that are not rejected.
  private(set) var nextDue: Instant = .max
  /// All requests have been tried, so their durations are known.
  private(set) var isSurveyed = true
  private var lastForced: Instant = .min
  /// The fast request takes longer than its period: there are no gaps.
  private var isCrowded = false
  /// The fast request was answered since the last request that did not fit.
  private var mayForce = false
  private var mayAlternate = false

  private static let margin: Nanoseconds = 2 * .millisecond
  private static let forcedPause: Nanoseconds = .second
  private static let refusalLasts: Nanoseconds = 600 * .second
  private static let scalesLast: Nanoseconds = 600 * .second
  private static let busyPause: Nanoseconds = 100 * .millisecond

  /// Recomputes the next due time.
  private mutating func settle() {
    nextDue = requests.lazy.map(\.due).min() ?? .max
    isSurveyed = requests.allSatisfy(\.isSurveyed)
  }

  /// Sets the requests of a vehicle.
  mutating func replace(with requests: [PollRequest]) {
    self.requests = requests
    begin()
  }

  /// Resets all requests for a new connection.
  mutating func begin() {
    for index in requests.indices { requests[index].begin() }
    (lastForced, mayForce) = (.min, false)
    settle()
  }

  /// Allows a request that does not fit. After a silence all missed requests are due.
  mutating func fastAnswered(afterSilence: Bool, isLate: Bool) {
    (mayForce, mayAlternate) = (true, true)
    isCrowded = isLate
    guard afterSilence else { return }
    for index in requests.indices where requests[index].misses > 0 { requests[index].postpone(until: .min) }
    settle()
  }

  /// Makes all requests that were answered before due at once, because the vehicle has changed.
  mutating func hasten() {
    for index in requests.indices where requests[index].standing == .answered { requests[index].postpone(until: .min) }
    settle()
  }

  /// A request that does not fit starts right after the fast request or not before its next response: started at the slot it would delay
  /// the fast request by its full duration.
  mutating func nothingBegins() { mayForce = false }

  mutating func retargeted(took: Nanoseconds) { retargetCost = took > retargetCost ? took : retargetCost - (retargetCost - took) / 8 }

  /// The current addressing of the adapter.
  struct AdapterAddressing {
    let addressing: ECUAddressing?
    /// The addressing that the fast request needs.
    let fastAddressing: ECUAddressing
    /// From `fastAddressing` the adapter takes the header with the request, for all ECUs that its default filter passes.
    let supportsSTPX: Bool

    func isAt(_ request: PollRequest) -> Bool { request.target == addressing?.target && !request.isPatient }

    /// Whether the header can go with the request. Not for functional requests: the adapter waits for the message of one ECU.
    func reaches(_ request: PollRequest) -> Bool {
      supportsSTPX && addressing == fastAddressing && request.target.passesDefaultFilter
        && fastAddressing.bus.adapted(to: request.target) == fastAddressing.bus
    }

    /// The number of times the adapter is retargeted, there and back.
    func retargets(_ request: PollRequest) -> Nanoseconds {
      isAt(request) || reaches(request)
        ? addressing == fastAddressing ? 0 : 1 : request.target == fastAddressing.target && !request.isPatient ? 1 : 2
    }
  }

  /// The request to send now; the adapter must be back at `fastAddressing` within `room`.
  mutating func pick(at now: Instant, room: Nanoseconds, _ adapter: AdapterAddressing) -> Int? {
    guard now >= nextDue else { return nil }
    var best: Int?
    var urgency: (Priority, Int, Instant) = (.low, 0, 0)
    for index in requests.indices where requests[index].due <= now {
      let request = requests[index]
      let needed = request.cost &+ request.cost / 8 &+ adapter.retargets(request) &* retargetCost &+ Self.margin
      guard needed <= room || isForced(request, at: now) else { continue }
      // Requests at the current target come first, to avoid retargeting twice.
      let rank = (
        request.priority, adapter.isAt(request) && adapter.addressing != adapter.fastAddressing ? 0 : 1,
        request.due == .min ? .min : request.due &+ request.period
      )
      if best == nil || rank < urgency { (best, urgency) = (index, rank) }
    }
    return best
  }

  /// Whether the request is sent although it delays the fast request.
  private func isForced(_ request: PollRequest, at now: Instant) -> Bool {
    if request.isFast { return mayAlternate }
    guard mayForce else { return false }
    if !request.isSurveyed { return true }
    // If the fast request leaves no gaps, a fifth of the time is for the others.
    let pause = isCrowded ? min(4 &* request.cost, Self.forcedPause) : Self.forcedPause
    guard lastForced == .min || now &- lastForced >= pause else { return false }
    return request.due != .min && now &- request.due >= (isCrowded ? 0 : max(request.period, .second))
  }

  /// Splits the PIDs of a request into two requests.
  private mutating func split(_ index: Int) {
    let whole = requests[index]
    let half = whole.parameters.count / 2
    requests[index] = whole.asking(for: whole.parameters.prefix(half))
    requests.append(whole.asking(for: whole.parameters.dropFirst(half)))
    settle()
  }

  /// The request to poll if the fast request fails: one that shares its rate, else one that was answered, else any candidate.
  var successor: Int? {
    let able = requests.indices.filter { index in
      let request = requests[index]
      if case .refused = request.standing { return false }
      return !request.parameters.isEmpty && !request.asksScales && request.misses == 0
    }
    return able.first { requests[$0].isFast } ?? able.first { requests[$0].standing == .answered } ?? able.first
  }

  /// Rejects all requests for a target and returns them.
  mutating func refuse(_ target: Target?, _ message: String) -> [PollRequest] {
    let indices = requests.indices.filter { requests[$0].target == target }
    for index in indices { requests[index].refused(message, until: .max) }
    settle()
    return indices.map { requests[$0] }
  }

  /// Whether a request is waiting that goes before the fast request.
  func hasForced(at now: Instant) -> Bool {
    guard now >= nextDue else { return false }
    return requests.contains { $0.due <= now && isForced($0, at: now) }
  }

  mutating func asked(_ index: Int, at now: Instant, room: Nanoseconds) {
    if requests[index].cost > room, !requests[index].isFast { lastForced = now }
    if requests[index].isFast { mayAlternate = false } else { mayForce = false }
    requests[index].asked(at: now)
    settle()
  }

  // MARK: Replies

  /// Handles the reply to a request: publishes its values, and counts it.
  mutating func replied(
    _ index: Int, took: Nanoseconds, _ parsed: CANReader.Outcome, _ session: AdapterSession, at now: Instant,
    _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    defer { settle() }
    switch parsed {
    case .messages: return judge(index, took: took, session, at: now, &values, &effects)
    case .empty: return unusable(index, "empty reply", took: took, at: now, &values, &effects)
    case .unreadable(let reason):
      return unusable(index, reason, isUnreadable: true, took: took, at: now, &values, &effects)
    case .status(let status):
      switch status.demand {
      case .reinitialize, .wake: return .settingsLost(status)
      case .noResponse, .backOff, .retry: return missed(index, requests[index].message(for: status), took: took, at: now, &values, &effects)
      case .unsupported where session.usesSTPX:
        requests[index].postpone(until: now)
        return .rejectsSTPX
      case .unsupported:
        // The adapter does not support the digit or the length of the request.
        requests[index].countRefused()
        return missed(index, status.message, took: took, at: now, &values, &effects)
      case .discard, .resynchronise, .acknowledge, .ignore:
        return unusable(index, status.message, took: took, at: now, &values, &effects)
      }
    }
  }

  private mutating func judge(
    _ index: Int, took: Nanoseconds, _ session: AdapterSession, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    let (request, reader) = (requests[index], session.reader)
    let frames = reader.frames(askedOf: request.target)
    switch request.evaluate(reader) {
    case .identity(let texts, let source):
      requests[index].answered(at: now, took: took, frames: frames, by: source)
      let text = texts.joined(separator: ", ")
      if let row = request.rows.first { values.publish(.value(.string(text)), at: row.position, at: now, &effects) }
      return .identified(text)
    case .damagedIdentity:
      let message = "unreadable vehicle information"
      values.withdraw(request, message, &effects)
      return unusable(index, message, took: took, at: now, &values, &effects)
    case .values(let data, let source):
      let share = values.publish(request.rows, request.parameters, reader, data, from: source, at: now, &effects)
      if share == .none {
        values.countBadReply(session.dialogue.reply, &effects)
        if request.parameters.count == 1 {
          return missed(index, "response length differs from SAE J1979", took: took, at: now, &values, &effects)
        }
      }
      requests[index].answered(at: now, took: took, frames: frames, by: source)
      if request.asksScales {
        values.takeScales(reader)
        // An ECU's scaling does not change while it runs.
        if share == .whole { requests[index].postpone(until: now &+ Self.scalesLast) }
      }
      return .answered(share, isSplit: share != .whole && request.parameters.count > 1 && answeredShort(index))
    case .refused(let code): return refused(index, code, took: took, at: now, &values, &effects)
    case .unusable(let reason): return unusable(index, reason, took: took, at: now, &values, &effects)
    }
  }

  /// A response held fewer PIDs than requested: repeatedly short ones get smaller requests. Returns whether the request was split.
  private mutating func answeredShort(_ index: Int) -> Bool {
    requests[index].answeredShort()
    guard requests[index].shortAnswers >= 2 else { return false }
    split(index)
    return true
  }

  private mutating func refused(
    _ index: Int, _ code: UInt8, took: Nanoseconds, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    let request = requests[index]
    let message = "the vehicle rejects the request (\(NegativeResponse.name(of: code)))"
    switch NegativeResponse.demand(of: code) {
    case .tryOther where !request.isFast && !request.isReplaced:
      requests[index].refused(message, until: now &+ Self.refusalLasts)
      values.withdraw(request, message, &effects)
    case .giveUp:
      requests[index].refused(message, until: .max)
      values.withdraw(request, message, &effects)
    // The response came after the adapter's timeout. It is requested again later, with a longer one.
    case .pause where !request.isPatient: requests[index].becomePatient(until: now &+ Self.busyPause)
    case .askAgain where request.misses < 3: requests[index].busy(until: now &+ Self.busyPause)
    case .tryOther, .askAgain, .pause, .backOff: return missed(index, message, took: took, at: now, &values, &effects)
    }
    return .missed
  }

  private mutating func missed(
    _ index: Int, _ message: String, took: Nanoseconds, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> RequestOutcome {
    requests[index].missed(at: now, took: took)
    let request = requests[index]
    // Identification must not be that of another vehicle.
    guard request.misses >= (request.isIdentity ? 1 : 2) else { return .missed }
    values.withdraw(request, message, &effects)
    // Perhaps there were too many PIDs in one request.
    if request.standing == .unknown, request.parameters.count > 1 { split(index) }
    return .missed
  }

  private mutating func unusable(
    _ index: Int, _ reason: String, isUnreadable: Bool = false, took: Nanoseconds, at now: Instant, _ values: inout ValueTable,
    _ effects: inout Effects
  ) -> RequestOutcome {
    requests[index].missed(at: now, took: took)
    if requests[index].misses >= 2 { values.withdraw(requests[index], reason, &effects) }
    return .unusable(reason, isUnreadable: isUnreadable)
  }

  /// The adapter did not reply, or did not end its reply; `isRepeated`: for a reason that is not the request's.
  mutating func aborted(_ index: Int, took: Nanoseconds, isRepeated: Bool, at now: Instant) {
    requests[index].missed(at: now, took: took)
    if isRepeated { requests[index].postpone(until: now) }
    settle()
  }

  /// The vehicle was silent, and may be another one: it is identified again.
  mutating func identifyAgain() {
    for index in requests.indices where requests[index].isIdentity || requests[index].isCheck || requests[index].asksScales {
      requests[index].startOver()
    }
    settle()
  }

  // MARK: Exchange with the fast request

  mutating func append(_ request: PollRequest) {
    requests.append(request)
    settle()
  }

  /// Takes a request out; `old`, the fast request, is polled in its place, soon after it failed.
  mutating func exchange(_ index: Int, with old: PollRequest, failedAt now: Instant?) -> PollRequest {
    let new = requests[index]
    requests[index] = old
    if let now { requests[index].replaced(at: now) }
    settle()
    return new
  }

  /// Takes out a request that is answered again.
  mutating func remove(_ index: Int) -> PollRequest {
    defer { settle() }
    return requests.remove(at: index)
  }

  /// A request that failed as the fast one is answered again.
  mutating func restored(_ index: Int) { requests[index].restored() }
}
