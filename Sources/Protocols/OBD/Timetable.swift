// Which question is asked in the gaps of the fast page: of those that are due the one whose deadline comes first, if it is back before
// the page's next slot, with the turning of the adapter there and back. What never fits is asked all the same once it is a period
// late, one a second at most: late for the page by one slot, and not silent for ever. Pure: instants in, an index out.

struct Timetable: Sendable {
  var inquiries: [Inquiry] = []
  /// How long it takes to turn the adapter to another target, of late.
  private(set) var turnCost: Nanoseconds = 12 * .millisecond
  /// When the next is due, of those that are not known to be refused.
  private(set) var nextDue: Instant = .max
  /// Everything was tried: what fits where is known.
  private(set) var isSurveyed = true
  private var lastForced: Instant = .min
  /// The page takes longer than from one slot to the next: there will be no gap.
  private var isCrowded = false
  /// The page was answered since something was asked although it did not fit.
  private var mayForce = false
  private var mayAlternate = false

  private static let margin: Nanoseconds = 2 * .millisecond
  private static let forcedPause: Nanoseconds = .second

  /// Something was asked, answered or put off: looks anew for what is due first.
  mutating func settle() {
    nextDue = inquiries.lazy.map(\.due).min() ?? .max
    isSurveyed = inquiries.allSatisfy(\.isSurveyed)
  }

  /// A connection begins.
  mutating func begin() {
    for index in inquiries.indices { inquiries[index].begin() }
    (lastForced, mayForce) = (.min, false)
    settle()
  }

  /// The page was answered: something that does not fit may be asked. After a silence all that was missed is due.
  mutating func pageAnswered(afterSilence: Bool, isLate: Bool) {
    (mayForce, mayAlternate) = (true, true)
    isCrowded = isLate
    guard afterSilence else { return }
    for index in inquiries.indices where inquiries[index].misses > 0 { inquiries[index].due = .min }
    settle()
  }

  /// The vehicle was changed: what it answered before is due at once.
  mutating func hasten() {
    for index in inquiries.indices where inquiries[index].standing == .answered { inquiries[index].due = .min }
    settle()
  }

  /// What does not fit begins right behind the page or not before its next answer: at the page's slot it would make it late by all that
  /// it takes, there only by what is missing.
  mutating func nothingBegins() { mayForce = false }

  mutating func turned(took: Nanoseconds) { turnCost = took > turnCost ? took : turnCost - (turnCost - took) / 8 }

  /// How the adapter stands.
  struct Way {
    let aim: Aim?
    /// Where it must be for the page.
    let home: Aim
    /// From home it can ask whoever its usual filter hears without being turned.
    let takesHeader: Bool

    func isAt(_ inquiry: Inquiry) -> Bool { inquiry.target == aim?.target && !inquiry.isPatient }

    /// With whom to ask in the question. That waits for the message of one controller: whom several answer is not asked so.
    func reaches(_ inquiry: Inquiry) -> Bool {
      takesHeader && aim == home && inquiry.target.isUsual && home.bus.carrying(inquiry.target) == home.bus
    }

    /// How often it must be turned, there and back.
    func turns(_ inquiry: Inquiry) -> Nanoseconds {
      isAt(inquiry) || reaches(inquiry) ? aim == home ? 0 : 1 : inquiry.target == home.target && !inquiry.isPatient ? 1 : 2
    }
  }

  /// The question to ask now; the adapter must be back home after so much time.
  mutating func pick(at now: Instant, room: Nanoseconds, _ way: Way) -> Int? {
    guard now >= nextDue else { return nil }
    var best: Int?
    var urgency: (Priority, Int, Instant) = (.low, 0, 0)
    for index in inquiries.indices where inquiries[index].due <= now {
      let inquiry = inquiries[index]
      let needed = inquiry.cost &+ inquiry.cost / 8 &+ way.turns(inquiry) &* turnCost &+ Self.margin
      guard needed <= room || isForced(inquiry, at: now) else { continue }
      // Where the adapter is turned away already comes first: it is not turned there twice.
      let rank = (
        inquiry.priority, way.isAt(inquiry) && way.aim != way.home ? 0 : 1, inquiry.due == .min ? .min : inquiry.due &+ inquiry.period
      )
      if best == nil || rank < urgency { (best, urgency) = (index, rank) }
    }
    return best
  }

  /// Whether it is asked although the page comes late by it.
  private func isForced(_ inquiry: Inquiry, at now: Instant) -> Bool {
    if inquiry.isFast { return mayAlternate }
    guard mayForce else { return false }
    if !inquiry.isSurveyed { return true }
    // Where the page leaves no gap, a fifth of the time is the others'.
    let pause = isCrowded ? min(4 &* inquiry.cost, Self.forcedPause) : Self.forcedPause
    guard lastForced == .min || now &- lastForced >= pause else { return false }
    return inquiry.due != .min && now &- inquiry.due >= (isCrowded ? 0 : max(inquiry.period, .second))
  }

  /// Its parameters are asked for in two requests from now on.
  mutating func split(_ index: Int) {
    let whole = inquiries[index]
    let half = whole.parameters.count / 2
    inquiries[index] = whole.asking(for: whole.parameters.prefix(half))
    inquiries.append(whole.asking(for: whole.parameters.dropFirst(half)))
    settle()
  }

  /// What is polled where the request that is polled fails: what shares its rate, else what was answered, else whatever may be.
  var successor: Int? {
    let able = inquiries.indices.filter { index in
      let inquiry = inquiries[index]
      if case .refused = inquiry.standing { return false }
      return !inquiry.parameters.isEmpty && !inquiry.asksScales && inquiry.misses == 0
    }
    return able.first { inquiries[$0].isFast } ?? able.first { inquiries[$0].standing == .answered } ?? able.first
  }

  /// Whoever is asked there cannot be. Tells which questions that ends.
  mutating func refuse(_ target: Target?, _ words: String) -> [Int] {
    let indices = inquiries.indices.filter { inquiries[$0].target == target }
    for index in indices { inquiries[index].refused(words, until: .max) }
    settle()
    return indices
  }

  /// Whether something waits that goes before a page that is asked back to back, or that waits for so long that it is forced.
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
