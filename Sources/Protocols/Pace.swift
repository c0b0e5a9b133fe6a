// The poll clock and its statistics. The grid is absolute: slots at offset + n * period of the monotonic clock, so that it
// never drifts and devices with different phases take turns. A slot is used once or missed; missed slots are not made up.

struct Pace: Sendable {
  /// Nanoseconds between slots; 0 means back to back.
  private(set) var period: Nanoseconds
  private let usualPeriod: Nanoseconds
  private let phase: Double
  private var offset: Nanoseconds { Nanoseconds(Double(period) * phase) }
  /// When the next poll is due.
  private(set) var due: Instant = .min
  /// The next poll starts a run: it is sent as soon as possible, so its lateness is not counted.
  private var isFirst = true
  private(set) var missed = 0

  /// The pause after a failed poll in back-to-back mode.
  private static let breath: Nanoseconds = 50 * .millisecond
  private static let maxPeriod = 3600 * 1e9

  /// A grid with this many polls per second, shifted by a fraction of the period.
  init(rate: Double, phase: Double) {
    period = rate > 0 ? Nanoseconds(min((1e9 / rate).rounded(), Self.maxPeriod)) : 0
    usualPeriod = period
    self.phase = min(max(phase.isFinite ? phase : 0, 0), 1)
  }

  /// Limits the rate to one poll per `wanted` nanoseconds; nil restores the usual rate. Returns true if the period has changed.
  mutating func follow(_ wanted: Nanoseconds?) -> Bool {
    defer { period = max(usualPeriod, wanted ?? 0) }
    return period != max(usualPeriod, wanted ?? 0)
  }

  /// Starts polling: the current slot is used at once.
  mutating func begin(at now: Instant) {
    isFirst = true
    guard period > 0 else { return due = now }
    let since = now &- offset
    let beyond = since % period
    due = since &- (beyond < 0 ? beyond &+ period : beyond) &+ offset
  }

  /// Records that a poll is sent now. Returns its lateness; nil if it has no slot.
  mutating func take(at now: Instant) -> Nanoseconds? {
    guard period > 0 else { return nil }
    let slots = max(now &- due, 0) / period
    let slot = due &+ slots &* period
    defer { (due, isFirst) = (slot &+ period, false) }
    if isFirst { return nil }
    missed &+= Int(slots)
    return max(now &- slot, 0)
  }

  /// Records that the last poll failed. On the grid the next slot is the next attempt; back to back, a pause follows.
  mutating func failed(at now: Instant) {
    if period == 0 { due = now &+ Self.breath }
  }
}

/// Round-trip times and lateness of recent polls: at most 256, and at most ten seconds or three periods old.
struct Timing: Sendable {
  private struct Poll {
    var answered: Instant
    var roundTrip: Nanoseconds
    /// Negative if the poll had no slot.
    var lateness: Nanoseconds
  }

  private static let capacity = 256
  private let span: Nanoseconds
  private var polls: [Poll] = []
  private var next = 0

  /// Statistics of polls with this period.
  init(period: Nanoseconds) { span = max(10 * .second, 3 &* period &+ .second) }

  mutating func add(answered: Instant, roundTrip: Nanoseconds, lateness: Nanoseconds?) {
    let poll = Poll(answered: answered, roundTrip: roundTrip, lateness: lateness ?? -1)
    if polls.count < Self.capacity {
      polls.append(poll)
    } else {
      polls[next] = poll
      next = (next + 1) % Self.capacity
    }
  }

  mutating func forget() {
    polls.removeAll(keepingCapacity: true)
    next = 0
  }

  /// Median and 99th percentile, in nanoseconds.
  typealias Percentiles = (median: Nanoseconds, p99: Nanoseconds)

  /// Polls per second, round-trip times and lateness; nil if unknown.
  func summary(at now: Instant) -> (rate: Double?, roundTrip: Percentiles?, lateness: Percentiles?) {
    let recent = polls.filter { now &- $0.answered <= span }
    // Only polls on the grid count for the rate: the first one of a run is sent off the grid.
    let onGrid = recent.filter { $0.lateness >= 0 }
    let sent = (onGrid.isEmpty ? recent : onGrid).map { $0.answered &- $0.roundTrip }
    var rate: Double?
    if let first = sent.min(), let last = sent.max(), last > first { rate = Double(sent.count - 1) * 1e9 / Double(last &- first) }
    return (rate, percentiles(recent.map(\.roundTrip)), percentiles(onGrid.map(\.lateness)))
  }

  private func percentiles(_ values: [Nanoseconds]) -> Percentiles? {
    let sorted = values.sorted()
    guard let last = sorted.last else { return nil }
    return (sorted[sorted.count / 2], sorted.count < 2 ? last : sorted[min(sorted.count * 99 / 100, sorted.count - 1)])
  }
}
