// Statistics of polling: counters since the daemon started, and the timing of recent polls, each published at most once per second.

struct VESCStatistics: Sendable {
  private(set) var polls = 0
  private var timeouts = 0
  private var badResponses = 0
  private var timing: Timing
  // When the counters and the timing were last published; `.min` if never.
  private var countersPublished: Instant = .min
  private var timingPublished: Instant = .min

  init(period: Nanoseconds) { timing = Timing(period: period) }

  mutating func polled() { polls &+= 1 }
  mutating func timedOut() { timeouts &+= 1 }
  mutating func receivedInvalidResponse() { badResponses &+= 1 }

  mutating func add(roundTrip: Nanoseconds, lateness: Nanoseconds?, at now: Instant) {
    timing.add(answered: now, roundTrip: max(roundTrip, 0), lateness: lateness)
  }

  mutating func resetTiming() { timing.removeAll() }

  /// Whether the timing is due to be published.
  func isDue(at now: Instant) -> Bool { Self.isOld(timingPublished, at: now) }

  private static func isOld(_ instant: Instant, at now: Instant) -> Bool { instant == .min || now &- instant >= .second }

  /// Publishes counters and timing. `missed`: the number of missed slots; `noise`: the number of runs of invalid data.
  mutating func publish(missed: Int, noise: Int, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    countersPublished = .min
    timingPublished = now
    publishCounters(missed: missed, noise: noise, at: now, &publisher, &effects)
    let summary = timing.summary(at: now)
    if let rate = summary.rate { publisher.publish(.pollRate, .float((rate * 10).rounded() / 10), &effects) }
    publish(summary.roundTrip, .roundTrip, .roundTripP99, &publisher, &effects)
    publish(summary.lateness, .lateness, .latenessP99, &publisher, &effects)
  }

  /// Publishes the counters, which are valid even if the VESC does not respond.
  mutating func publishCounters(missed: Int, noise: Int, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard Self.isOld(countersPublished, at: now) else { return }
    countersPublished = now
    publisher.publish(.polls, .int(polls), &effects)
    publisher.publish(.missed, .int(missed), &effects)
    publisher.publish(.timeouts, .int(timeouts), &effects)
    publisher.publish(.badFrames, .int(noise &+ badResponses), &effects)
  }

  private func publish(
    _ percentiles: Timing.Percentiles?, _ median: VESCProperty, _ p99: VESCProperty, _ publisher: inout VESCPublisher,
    _ effects: inout Effects
  ) {
    guard let percentiles else { return }
    publisher.publish(median, .float(Double(percentiles.median / .microsecond) / 1000), &effects)
    publisher.publish(p99, .float(Double(percentiles.p99 / .microsecond) / 1000), &effects)
  }
}
