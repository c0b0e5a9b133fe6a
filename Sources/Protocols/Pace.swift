// When the next poll is due, and how well it went. The grid is absolute: slots at offset + n * period of the monotonic
// clock, so it never drifts and devices with different phases take turns. A slot is used once or missed, never made up.

struct Pace: Sendable {
  /// Nanoseconds between slots; 0 is back to back.
  private(set) var period: Nanoseconds
  private let usualPeriod: Nanoseconds
  private let phase: Double
  private var offset: Nanoseconds { Nanoseconds(Double(period) * phase) }
  /// When the next poll is due.
  private(set) var due: Instant = .min
  /// The next poll begins a run: it is sent when it can, which says nothing of punctuality.
  private var isFirst = true
  private(set) var missed = 0

  /// Back to back, a poll that failed is followed by the next after this long.
  private static let breath: Nanoseconds = 50 * .millisecond
  private static let maxPeriod = 3600 * 1e9

  /// So many polls a second, on a grid shifted by a part of the period.
  init(rate: Double, phase: Double) {
    period = rate > 0 ? Nanoseconds(min((1e9 / rate).rounded(), Self.maxPeriod)) : 0
    usualPeriod = period
    self.phase = min(max(phase.isFinite ? phase : 0, 0), 1)
  }

  /// What is polled is wanted no more often than this; nil: at the usual rate. True where that is new.
  mutating func follow(_ wanted: Nanoseconds?) -> Bool {
    defer { period = max(usualPeriod, wanted ?? 0) }
    return period != max(usualPeriod, wanted ?? 0)
  }

  /// Polling begins: the running slot is used at once.
  mutating func begin(at now: Instant) {
    isFirst = true
    guard period > 0 else { return due = now }
    let since = now &- offset
    let beyond = since % period
    due = since &- (beyond < 0 ? beyond &+ period : beyond) &+ offset
  }

  /// A poll goes out now. Says how late it is for its slot; nothing where there is no slot to be late for.
  mutating func take(at now: Instant) -> Nanoseconds? {
    guard period > 0 else { return nil }
    let slots = max(now &- due, 0) / period
    let slot = due &+ slots &* period
    defer { (due, isFirst) = (slot &+ period, false) }
    if isFirst { return nil }
    missed &+= Int(slots)
    return max(now &- slot, 0)
  }

  /// The last poll failed. On the grid the next slot is the next try; back to back there is a breath between.
  mutating func failed(at now: Instant) {
    if period == 0 { due = now &+ Self.breath }
  }
}

/// Round trips and lateness of the last polls: at most 256 of them, at most ten seconds or three periods old.
struct Timing: Sendable {
  private struct Poll {
    var answered: Instant
    var roundTrip: Nanoseconds
    /// Negative where there was no slot to be late for.
    var lateness: Nanoseconds
  }

  private static let capacity = 256
  private let span: Nanoseconds
  private var polls: [Poll] = []
  private var next = 0

  /// Of polls that come once a period.
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

  /// Polls a second, and how long they took and how late they were, as far as there is something to say.
  func summary(at now: Instant) -> (rate: Double?, roundTrip: Percentiles?, lateness: Percentiles?) {
    let recent = polls.filter { now &- $0.answered <= span }
    // The rate is that of the requests; one that began a run went out off the grid.
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
