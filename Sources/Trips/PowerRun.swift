// Adds many samples of current and voltage at once, while neither the state of motion nor that of charging changes.

extension PeriodDetector {
  /// Adds samples of the battery's current and voltage until one of them, or any other sample, needs `add`. As long as neither the state of
  /// motion nor that of charging changes, thousands of them can be added at once, with the same result. `offset` converts their times to
  /// wall-clock time; those from `limit` on are left. Returns the time of the last sample that was added.
  mutating func addPower(
    _ first: inout SampleCursor, _ second: inout SampleCursor, offset: Int64, before limit: Int64
  ) -> (time: Int64, changes: [Change])? {
    let current = first.role == .batteryCurrent ? first : second
    let start = min(first.time, second.time)
    guard var run = powerRun(from: start &+ offset, current: current.time == start ? current.number : nil) else { return nil }
    var last: Int64?
    while true {
      let time = min(first.time, second.time)
      let (hasFirst, hasSecond) = (first.time == time, second.time == time)
      guard time < limit, time &+ offset <= run.end, !hasFirst || run.accepts(first.role, first.number),
        !hasSecond || run.accepts(second.role, second.number)
      else { break }
      // The order is that of `add`.
      if hasFirst {
        addPower(first.role, first.number, at: time &+ offset, &run)
        first.advance()
      }
      if hasSecond {
        addPower(second.role, second.number, at: time &+ offset, &run)
        second.advance()
      }
      last = time &+ offset
    }
    return last.map { ($0, finish(run, at: $0)) }
  }
}

/// Successive samples of current and voltage during which the vehicle moves, charges, or does neither.
struct PowerRun {
  enum Activity { case moving, charging, idle }

  let activity: Activity
  let isStationary: Bool
  /// The time until which the activity is known.
  let end: Int64
  /// The current in A up to which the vehicle charges; infinite if it reports that itself.
  let threshold: Double
  /// The highest power into the battery, in kW.
  var peakPower: Double?

  /// Whether a sample belongs to the run.
  @inline(__always)
  func accepts(_ role: Role, _ number: Double) -> Bool {
    guard number.isFinite else { return false }
    guard activity != .moving, role == .batteryCurrent else { return true }
    return Self.indicatesCharge(number, threshold) == (activity == .charging)
  }

  @inline(__always)
  static func indicatesCharge(_ current: Double, _ threshold: Double) -> Bool {
    threshold == .infinity || Limits.current ~= current && current <= threshold
  }
}
