// When the next set-point is due, and whether one waits for its answer. Pure: time is an argument. Never lets two be on their
// way: what is due meanwhile waits, and then the newest is sent, not the one that waited.

struct SetPointScheduler {
  /// Nobody's hand is faster, and no screen.
  static let maxRate = 60.0

  /// Set-points a second.
  private(set) var rate: Double
  private var due: Double
  /// Since when a set-point waits for its answer.
  private(set) var asked: Double?

  /// The first is due at once.
  init(at now: Double, rate: Double = maxRate) {
    self.rate = rate
    due = now
  }

  /// The device wants so many a second at the most, where it says so; the lease wants some within its deadline, in seconds.
  mutating func limit(to wanted: Double?, deadline: Double) {
    guard let wanted, wanted.isFinite, wanted > 0 else { return rate = Self.maxRate }
    rate = min(Self.maxRate, max(wanted, 4 / deadline))
  }

  /// Whether a set-point is to be sent now; it counts as sent then. The grid is kept, and what was missed is not made up for.
  mutating func send(at now: Double) -> Bool {
    guard asked == nil, now >= due else { return false }
    asked = now
    due += 1 / rate
    if due <= now { due = now + 1 / rate }
    return true
  }

  /// Something else was asked that set-points wait for.
  mutating func ask(at now: Double) { asked = now }

  mutating func answered() { asked = nil }

  /// When to look again; nil while an answer is waited for.
  var wake: Double? { asked == nil ? due : nil }

  /// For how many seconds the one on its way has been waiting, when that is longer than `deadline`.
  func stall(at now: Double, deadline: Double) -> Double? {
    guard let asked, now - asked > deadline else { return nil }
    return now - asked
  }
}
