// Selects the request to send in the gaps of the fast request: earliest deadline first, if it completes, including retargeting, before the
// next slot. A request that never fits is sent once it is a period late, at most one per second.

struct Timetable: Sendable {
  var inquiries: [Inquiry] = []
  /// The recent duration of retargeting the adapter.
  private(set) var turnCost: Nanoseconds = 12 * .millisecond
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

  /// Recomputes the next due time.
  mutating func settle() {
    nextDue = inquiries.lazy.map(\.due).min() ?? .max
    isSurveyed = inquiries.allSatisfy(\.isSurveyed)
  }

  /// Resets all requests for a new connection.
  mutating func begin() {
    for index in inquiries.indices { inquiries[index].begin() }
    (lastForced, mayForce) = (.min, false)
    settle()
  }

  /// Allows a request that does not fit. After a silence all missed requests are due.
  mutating func pageAnswered(afterSilence: Bool, isLate: Bool) {
    (mayForce, mayAlternate) = (true, true)
    isCrowded = isLate
    guard afterSilence else { return }
    for index in inquiries.indices where inquiries[index].misses > 0 { inquiries[index].due = .min }
    settle()
  }

  /// Makes all requests that were answered before due at once, because the vehicle has changed.
  mutating func hasten() {
    for index in inquiries.indices where inquiries[index].standing == .answered { inquiries[index].due = .min }
    settle()
  }

  /// A request that does not fit starts right after the fast request or not before its next response: started at the slot it would delay
  /// the fast request by its full duration.
  mutating func nothingBegins() { mayForce = false }

  mutating func turned(took: Nanoseconds) { turnCost = took > turnCost ? took : turnCost - (turnCost - took) / 8 }

  /// The current addressing of the adapter.
  struct Way {
    let aim: Aim?
    /// The addressing that the fast request needs.
    let home: Aim
    /// From `home` the adapter takes the header with the request, for all ECUs that its default filter passes.
    let takesHeader: Bool

    func isAt(_ inquiry: Inquiry) -> Bool { inquiry.target == aim?.target && !inquiry.isPatient }

    /// Whether the header can go with the request. Not for functional requests: the adapter waits for the message of one ECU.
    func reaches(_ inquiry: Inquiry) -> Bool {
      takesHeader && aim == home && inquiry.target.isUsual && home.bus.carrying(inquiry.target) == home.bus
    }

    /// The number of times the adapter is retargeted, there and back.
    func turns(_ inquiry: Inquiry) -> Nanoseconds {
      isAt(inquiry) || reaches(inquiry) ? aim == home ? 0 : 1 : inquiry.target == home.target && !inquiry.isPatient ? 1 : 2
    }
  }

  /// The request to send now; the adapter must be back at `home` within `room`.
  mutating func pick(at now: Instant, room: Nanoseconds, _ way: Way) -> Int? {
    guard now >= nextDue else { return nil }
    var best: Int?
    var urgency: (Priority, Int, Instant) = (.low, 0, 0)
    for index in inquiries.indices where inquiries[index].due <= now {
      let inquiry = inquiries[index]
      let needed = inquiry.cost &+ inquiry.cost / 8 &+ way.turns(inquiry) &* turnCost &+ Self.margin
      guard needed <= room || isForced(inquiry, at: now) else { continue }
      // Requests at the current target come first, to avoid retargeting twice.
      let rank = (
        inquiry.priority, way.isAt(inquiry) && way.aim != way.home ? 0 : 1, inquiry.due == .min ? .min : inquiry.due &+ inquiry.period
      )
      if best == nil || rank < urgency { (best, urgency) = (index, rank) }
    }
    return best
  }

  /// Whether the request is sent although it delays the fast request.
  private func isForced(_ inquiry: Inquiry, at now: Instant) -> Bool {
    if inquiry.isFast { return mayAlternate }
    guard mayForce else { return false }
    if !inquiry.isSurveyed { return true }
    // If the fast request leaves no gaps, a fifth of the time is for the others.
    let pause = isCrowded ? min(4 &* inquiry.cost, Self.forcedPause) : Self.forcedPause
    guard lastForced == .min || now &- lastForced >= pause else { return false }
    return inquiry.due != .min && now &- inquiry.due >= (isCrowded ? 0 : max(inquiry.period, .second))
  }

  /// Splits the PIDs of a request into two requests.
  mutating func split(_ index: Int) {
    let whole = inquiries[index]
    let half = whole.parameters.count / 2
    inquiries[index] = whole.asking(for: whole.parameters.prefix(half))
    inquiries.append(whole.asking(for: whole.parameters.dropFirst(half)))
    settle()
  }

  /// The request to poll if the fast request fails: one that shares its rate, else one that was answered, else any candidate.
  var successor: Int? {
    let able = inquiries.indices.filter { index in
      let inquiry = inquiries[index]
      if case .refused = inquiry.standing { return false }
      return !inquiry.parameters.isEmpty && !inquiry.asksScales && inquiry.misses == 0
    }
    return able.first { inquiries[$0].isFast } ?? able.first { inquiries[$0].standing == .answered } ?? able.first
  }

  /// Rejects all requests for a target and returns their indices.
  mutating func refuse(_ target: Target?, _ message: String) -> [Int] {
    let indices = inquiries.indices.filter { inquiries[$0].target == target }
    for index in indices { inquiries[index].refused(message, until: .max) }
    settle()
    return indices
  }

  /// Whether a request is waiting that goes before the fast request.
  func hasForced(at now: Instant) -> Bool {
    guard now >= nextDue else { return false }
    return inquiries.contains { $0.due <= now && isForced($0, at: now) }
  }

  mutating func asked(_ index: Int, at now: Instant, room: Nanoseconds) {
    if inquiries[index].cost > room, !inquiries[index].isFast { lastForced = now }
    if inquiries[index].isFast { mayAlternate = false } else { mayForce = false }
    inquiries[index].asked(at: now)
    settle()
  }
}
