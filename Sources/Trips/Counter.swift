// A counter that only grows, such as an odometer or the energy into the battery. Implausible values are ignored. A jump to an unrelated
// value, for example after the instrument cluster is replaced, adds nothing; a counter that restarts at 0 with its device keeps adding.

struct Counter: Sendable, Equatable {
  /// The sum of all increments since the first value.
  private(set) var total = 0.0
  /// The last accepted value, as reported.
  private(set) var last: Double?
  /// The finest resolution of the values so far, a power of ten.
  private(set) var resolution: Double
  /// When the last value was read, and when it last changed.
  private var time = Int64.min
  private var changedAt = Int64.min
  private var unconfirmed: Double?
  private let maxPerSecond: Double
  private let canRestart: Bool

  /// Creates a counter that grows by at most `maxPerSecond`. `resolution` is assumed until the values show a finer one.
  init(resolution: Double, maxPerSecond: Double, canRestart: Bool) {
    (self.resolution, self.maxPerSecond, self.canRestart) = (resolution, maxPerSecond, canRestart)
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
    // The last value may have been a cached one, measured long before it was read.
    let longLimit = self.limit(since: changedAt, now)
    if 0...longLimit ~= new - last { return accept(new, increment: new - last, now) }
    return accept(new, increment: canRestart && new < last && new <= longLimit ? new : 0, now)
  }

  private func limit(since time: Int64, _ now: Int64) -> Double { maxPerSecond * Double(max(now - time, 0)) / 1e6 + 2 * resolution }

  private mutating func accept(_ new: Double, increment: Double, _ now: Int64) -> Bool {
    total += increment
    (last, time, changedAt, unconfirmed) = (new, now, now, nil)
    while resolution > 2e-6, !isMultiple(new) { resolution /= 10 }
    return true
  }

  private func isMultiple(_ value: Double) -> Bool {
    let steps = value / resolution
    return abs(steps - steps.rounded()) < 1e-4
  }
}
