// A counter that only grows: an odometer, energy into the battery. Damaged values do not count, nor does a counter that is replaced; one
// that restarts at 0 with its device goes on.

struct Counter: Sendable, Equatable {
  /// The sum of all increments since the first value.
  private(set) var total = 0.0
  /// The last accepted value, as reported.
  private(set) var last: Double?
  /// The smallest step of the values: a power of ten.
  private(set) var quantum: Double
  /// When the last value was read, and when it changed.
  private var time = Int64.min
  private var changedAt = Int64.min
  private var unconfirmed: Double?
  private let maxPerSecond: Double
  private let restarts: Bool

  /// A counter that grows by at most `maxPerSecond`. `quantum` is the largest possible step.
  init(quantum: Double, maxPerSecond: Double, restarts: Bool) {
    (self.quantum, self.maxPerSecond, self.restarts) = (quantum, maxPerSecond, restarts)
  }

  /// Handles a value; returns whether it is accepted.
  mutating func update(_ new: Double, at now: Int64) -> Bool {
    if let last, new == last {
      (time, unconfirmed) = (now, nil)
      return true
    }
    guard 0..<1e10 ~= new else { return false }
    guard let last else {
      return accept(new, increment: 0, now)
    }
    let limit = limit(since: time, now)
    if 0...limit ~= new - last { return accept(new, increment: new - last, now) }
    guard let unconfirmed, 0...limit ~= new - unconfirmed else {
      unconfirmed = new
      return false
    }
    // The last value may have been a stored one, which was read long before.
    let longLimit = self.limit(since: changedAt, now)
    if 0...longLimit ~= new - last { return accept(new, increment: new - last, now) }
    return accept(new, increment: restarts && new < last && new <= longLimit ? new : 0, now)
  }

  private func limit(since time: Int64, _ now: Int64) -> Double { maxPerSecond * Double(max(now - time, 0)) / 1e6 + 2 * quantum }

  private mutating func accept(_ new: Double, increment: Double, _ now: Int64) -> Bool {
    total += increment
    (last, time, changedAt, unconfirmed) = (new, now, now, nil)
    while quantum > 2e-6, !isMultiple(new) { quantum /= 10 }
    return true
  }

  private func isMultiple(_ value: Double) -> Bool {
    let steps = value / quantum
    return abs(steps - steps.rounded()) < 1e-4
  }
}
