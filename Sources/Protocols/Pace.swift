// The polling grid and the statistics of polls. The grid is absolute: its slots are at offset + n * period on the monotonic clock, so it
// never drifts, and devices with different phases take turns. A slot is used once or missed; missed slots are skipped.

/// The times of polls: on a grid with a fixed period, or back to back.
struct Pace: Sendable {
  /// Nanoseconds between slots, or 0 to poll back to back: each poll is sent as soon as the previous one has ended.
  private(set) var period: Nanoseconds
  private let usualPeriod: Nanoseconds
  private let phase: Double
  private var offset: Nanoseconds { Nanoseconds(Double(period) * phase) }
  /// The time at which the next poll is due.
  private(set) var due: Instant = .min
  /// Whether the next poll starts a run: it is sent as soon as possible, so its lateness is not counted.
  private var isFirst = true
  /// The number of slots that passed without a poll.
  private(set) var missed = 0

  /// The pause after a failed poll in back-to-back mode.
  private static let backToBackRetryDelay: Nanoseconds = 50 * .millisecond
  /// The longest wait after a failed poll of a peer that has not answered yet.
  private static let maxRetryDelay: Nanoseconds = .second
  /// One hour, in nanoseconds.
  private static let maxPeriod = 3600 * 1e9

  /// Creates a grid with `rate` polls per second (0 for back to back), shifted by `phase`, a fraction of the period.
  init(rate: Double, phase: Double) {
    period = rate > 0 ? Nanoseconds(min((1e9 / rate).rounded(), Self.maxPeriod)) : 0
    usualPeriod = period
    self.phase = min(max(phase.isFinite ? phase : 0, 0), 1)
  }

  /// Limits the rate to one poll per `minPeriod` nanoseconds; nil restores the usual rate. Returns true if the period has changed.
  mutating func limitRate(toOnePollPer minPeriod: Nanoseconds?) -> Bool {
    defer { period = max(usualPeriod, minPeriod ?? 0) }
    return period != max(usualPeriod, minPeriod ?? 0)
  }

  /// Starts polling: the current slot is used at once.
  mutating func begin(at now: Instant) {
    isFirst = true
    due = period > 0 ? slot(at: now) : now
  }

  /// The slot at this time, or the one before it.
  private func slot(at now: Instant) -> Instant {
    let time = now &- offset
    let sinceSlot = time % period
    return time &- (sinceSlot < 0 ? sinceSlot &+ period : sinceSlot) &+ offset
  }

  /// Records that a poll is sent now. Returns its lateness in nanoseconds; nil if the poll is the first or back to back.
  mutating func recordPoll(at now: Instant) -> Nanoseconds? {
    guard period > 0 else { return nil }
    if isFirst {
      (due, isFirst) = (slot(at: now) &+ period, false)
      return nil
    }
    let slots = max(now &- due, 0) / period
    let slot = due &+ slots &* period
    defer { due = slot &+ period }
    missed &+= Int(slots)
    return max(now &- slot, 0)
  }

  /// Records that the last poll failed. On the grid the next slot is the next attempt; back to back, a pause follows. `retriesSoon`: the
  /// peer has not answered yet, so that an attempt does not wait for a slot that is far away.
  mutating func failed(at now: Instant, retriesSoon: Bool = false) {
    if period == 0 {
      due = now &+ Self.backToBackRetryDelay
    } else if retriesSoon, due &- now > Self.maxRetryDelay {
      (due, isFirst) = (now &+ Self.maxRetryDelay, true)
    }
  }
}

/// Round-trip times and lateness of at most 256 recent polls. Polls older than 10 s do not count; at long periods, the limit is three
/// periods plus 1 s.
struct Timing: Sendable {
  /// One poll, in only 16 bytes because the polls are the largest part of a device's state.
  private struct Poll {
    var answered: Instant
    /// In microseconds.
    var roundTrip: Int32
    /// In microseconds; negative if the poll had no slot.
    var lateness: Int32
  }

  private static let capacity = 256
  /// The maximum age of a poll that counts, in nanoseconds.
  private let maxAge: Nanoseconds
  private var polls: [Poll] = []
  /// The position that the next poll overwrites once the list is full.
  private var next = 0

  /// Statistics of polls with this period.
  init(period: Nanoseconds) { maxAge = max(10 * .second, 3 &* period &+ .second) }

  mutating func add(answered: Instant, roundTrip: Nanoseconds, lateness: Nanoseconds?) {
    let microseconds = { (time: Nanoseconds) in Int32(clamping: time / .microsecond) }
    let poll = Poll(answered: answered, roundTrip: microseconds(roundTrip), lateness: lateness.map(microseconds) ?? -1)
    if polls.count < Self.capacity {
      polls.append(poll)
    } else {
      polls[next] = poll
      next = (next + 1) % Self.capacity
    }
  }

  mutating func removeAll() {
    polls.removeAll(keepingCapacity: true)
    next = 0
  }

  /// Median and 99th percentile, in nanoseconds.
  typealias Percentiles = (median: Nanoseconds, p99: Nanoseconds)

  /// Polls per second, round-trip times and lateness; nil if unknown.
  func summary(at now: Instant) -> (rate: Double?, roundTrip: Percentiles?, lateness: Percentiles?) {
    let recent = polls.filter { now &- $0.answered <= maxAge }
    // Only polls on the grid count for the rate: the first one of a run is sent off the grid.
    let onGrid = recent.filter { $0.lateness >= 0 }
    let sent = (onGrid.isEmpty ? recent : onGrid).map { $0.answered &- Nanoseconds($0.roundTrip) &* .microsecond }
    var rate: Double?
    if let first = sent.min(), let last = sent.max(), last > first { rate = Double(sent.count - 1) * 1e9 / Double(last &- first) }
    return (rate, percentiles(recent.map(\.roundTrip)), percentiles(onGrid.map(\.lateness)))
  }

  private func percentiles(_ microseconds: [Int32]) -> Percentiles? {
    let sorted = microseconds.sorted()
    guard !sorted.isEmpty else { return nil }
    let value = { (index: Int) in Nanoseconds(sorted[index]) * .microsecond }
    return (value(sorted.count / 2), value(min(sorted.count * 99 / 100, sorted.count - 1)))
  }
}
