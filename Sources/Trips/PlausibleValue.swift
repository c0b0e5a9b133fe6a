// Filters measured values: a value out of range is dropped, and an implausible step counts only once a second value confirms it.

struct PlausibleValue: Sendable, Equatable {
  private(set) var value: Double?
  private var time = Int64.min
  private var unconfirmed: Double?
  private let range: ClosedRange<Double>
  /// The largest plausible change: `slack` at once, and `slope` per second.
  private let slack: Double
  private let slope: Double

  init(_ range: ClosedRange<Double>, slack: Double = .infinity, slope: Double = 0) {
    (self.range, self.slack, self.slope) = (range, slack, slope)
  }

  /// Handles a value. Returns whether it is accepted.
  @inline(__always)
  mutating func update(_ new: Double, at now: Int64) -> Bool {
    guard range.contains(new) else { return false }
    if let value, new != value {
      let limit = slack + slope * Double(now - time) / 1e6
      if abs(new - value) > limit {
        guard let unconfirmed, abs(new - unconfirmed) <= limit else {
          unconfirmed = new
          return false
        }
      }
    }
    (value, time, unconfirmed) = (new, now, nil)
    return true
  }

  mutating func forget() { (value, unconfirmed) = (nil, nil) }
}
