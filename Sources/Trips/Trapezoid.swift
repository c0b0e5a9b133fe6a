// The integral of a sampled value by the trapezoidal rule. Nothing is integrated across a gap.

struct Trapezoid: Sendable {
  private(set) var value = 0.0
  private var time: Int64?

  /// The areas above and below zero, in units of value × hours, and the time that they cover.
  struct Step {
    var positive: Double
    var negative: Double
    var time: Int64
  }

  /// Adds a sample. Returns the step since the last one, or nil if that is too long ago. A sample at the same time replaces the last one.
  @inline(__always)
  mutating func update(_ new: Double, at now: Int64) -> Step? {
    defer { (value, time) = (new, now) }
    guard let time, now > time, now - time <= Limits.sampleAge else { return nil }
    let hours = Double(now - time) / 3.6e9
    if value >= 0, new >= 0 { return Step(positive: (value + new) / 2 * hours, negative: 0, time: now - time) }
    if value <= 0, new <= 0 { return Step(positive: 0, negative: -(value + new) / 2 * hours, time: now - time) }
    // The line crosses zero.
    let (high, low) = (max(value, new), min(value, new))
    let span = (high - low) * 2
    return Step(positive: high * high / span * hours, negative: low * low / span * hours, time: now - time)
  }

  mutating func interrupt() { time = nil }
}
