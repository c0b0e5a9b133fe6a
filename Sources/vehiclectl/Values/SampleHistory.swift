// The values of a number in the last minute, one per second. No I/O. A value is valid until the next one, or until it is withdrawn.

struct SampleHistory {
  /// The length in seconds.
  static let length = 60
  /// The marks for seconds without a sample, and for seconds in which the value was withdrawn.
  private static let (none, withdrawn) = (Float.nan, -Float.infinity)

  /// A ring buffer of values by second; empty until the first value.
  private var values: [Float] = []
  /// The second of the latest sample.
  private var latest = Int.min
  /// The value before the oldest second in the ring.
  private var before = Self.none

  /// Adds a number that was measured in this second; nil withdraws the value. Ignores a number that is older than the ring buffer.
  mutating func add(_ number: Double?, at second: Int) {
    if number == nil, values.isEmpty { return }
    if values.isEmpty {
      values = [Float](repeating: Self.none, count: Self.length)
      latest = second
    }
    guard second > latest - Self.length else { return }
    if second - latest > Self.length {  // everything in the ring is older than a minute
      before = sample(latest)
      for index in values.indices { values[index] = Self.none }
      latest = second
    }
    while latest < second {
      latest += 1
      let oldest = values[Self.index(latest)]
      if !oldest.isNaN { before = oldest }
      values[Self.index(latest)] = Self.none
    }
    values[Self.index(second)] = number.map { Float($0) } ?? Self.withdrawn
  }

  /// The values of the last minute up to this second, one for each `step` seconds; nil where there was none.
  func samples(step: Int, until now: Int) -> [Float?] {
    guard !values.isEmpty, step > 0 else { return [] }
    // Steps begin at multiples of their length, so that samples move only when a step ends.
    let end = (Int((Double(now) / Double(step)).rounded(.down)) + 1) * step
    let start = end - Self.length / step * step
    var current = before
    let oldest = latest - Self.length + 1
    for second in oldest..<max(oldest, min(start, latest + 1)) { follow(second, &current) }
    return (0..<(Self.length / step)).map { column in
      for second in (start + column * step)..<(start + (column + 1) * step) where second <= now { follow(second, &current) }
      return current.isFinite ? current : nil
    }
  }

  private func follow(_ second: Int, _ current: inout Float) {
    guard second > latest - Self.length, second <= latest else { return }
    let value = values[Self.index(second)]
    if !value.isNaN { current = value }
  }

  private func sample(_ second: Int) -> Float {
    var current = before
    for second in (second - Self.length + 1)...second { follow(second, &current) }
    return current
  }

  private static func index(_ second: Int) -> Int { ((second % length) + length) % length }
}
