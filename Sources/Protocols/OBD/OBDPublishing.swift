// What the machine publishes: the page's fields at every answer, its own measurements once a second. What is absent is
// said once, not at every poll.

extension OBDMachine {
  mutating func publishPage(_ range: Range<Int>, _ effects: inout Effects) {
    let payload = reader.payload
    payload.withUnsafeBufferPointer { payload in
      BMSPage.read(UnsafeBufferPointer(rebasing: payload[range])) { signal, result in
        switch result {
        case .value(let value):
          said[signal.rawValue] = .none
          effects.publish(signal.rawValue, value)
        case .absent(let absence):
          if said[signal.rawValue] != absence { effects.withdraw(signal.rawValue, absence.words) }
          said[signal.rawValue] = absence
        }
      }
    }
  }

  /// The vehicle says nothing: neither its values nor the measurements of the polling stand any longer.
  mutating func withdrawVehicle(_ reason: String, _ effects: inout Effects) {
    for position in Signal.vehicle { effects.withdraw(position, reason) }
    for position in Signal.measured { effects.withdraw(position, reason) }
    forgetMeasurements()
  }

  mutating func publishMeasurements(at now: Instant, _ effects: inout Effects) {
    counters.published = .min
    publishCounters(at: now, &effects)
    let summary = timing.summary(at: now)
    if let rate = summary.rate { effects.publish(Signal.pollRate.rawValue, .float((rate * 10).rounded() / 10)) }
    publish(summary.roundTrip, .roundTrip, .roundTripP99, &effects)
    publish(summary.lateness, .lateness, .latenessP99, &effects)
  }

  /// What is counted whether or not the vehicle answers: once a second at most.
  mutating func publishCounters(at now: Instant, _ effects: inout Effects) {
    guard counters.isOld(at: now) else { return }
    counters.published = now
    effects.publish(Signal.polls.rawValue, .int(counters.polls))
    effects.publish(Signal.missed.rawValue, .int(pace.missed))
  }

  private func publish(_ percentiles: Timing.Percentiles?, _ median: Signal, _ p99: Signal, _ effects: inout Effects) {
    guard let percentiles else { return }
    effects.publish(median.rawValue, .float(Self.milliseconds(percentiles.median)))
    effects.publish(p99.rawValue, .float(Self.milliseconds(percentiles.p99)))
  }

  /// With microseconds as its fraction.
  private static func milliseconds(_ time: Nanoseconds) -> Double { Double(time / .microsecond) / 1000 }
}
