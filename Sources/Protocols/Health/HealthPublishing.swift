// Selects the published value of each metric: the value that a client set, or the imported value, whichever is newer. Totals are published
// only on their day, and a heart rate until it expires. An estimated value is marked as such.

extension HealthMachine {
  /// A value that may be published.
  struct Candidate: Sendable, Equatable {
    var number: Double
    var source: String
    /// The time of the value, in microseconds since the Unix epoch.
    var micros: Int64
    /// When the value expires, or nil if it expires at midnight.
    var expires: Instant?
  }

  /// When the published heart rate expires.
  var heartRateExpires: Instant? { published[.heartRate]?.expires }

  /// Publishes the values that have changed.
  mutating func publishChanges(at now: Instant, _ effects: inout Effects) {
    for metric in HealthMetric.allCases { publish(metric, candidate(metric, at: now), at: now, &effects) }
    effects.append(.status(published.isEmpty ? "ready" : "live"))
    effects.append(.fault(gadgetbridge?.fault))
  }

  private mutating func publish(_ metric: HealthMetric, _ candidate: Candidate?, at now: Instant, _ effects: inout Effects) {
    guard let candidate, let value = metric.value(candidate.number) else {
      published[metric] = nil
      let reason = absence(of: metric, at: now)
      guard publishedSource[metric] != reason else { return }
      publishedSource[metric] = reason
      effects.withdraw(metric.rawValue, reason)
      return effects.withdraw(metric.sourceProperty, reason)
    }
    let before = published[metric]
    published[metric] = candidate
    if before?.number == candidate.number, before?.micros == candidate.micros, publishedSource[metric] == candidate.source { return }
    publishedSource[metric] = candidate.source
    let age = clock.age(of: candidate.micros, at: now)
    effects.publish(metric.rawValue, value, age: age)
    effects.publish(metric.sourceProperty, .string(candidate.source), age: age)
  }

  private func candidate(_ metric: HealthMetric, at now: Instant) -> Candidate? {
    let imported = gadgetbridge?.candidate(metric, clock, maxAge: settings.heartRateMaxAge, at: now)
    if let newest = [setByHand(metric, at: now), imported].compactMap(\.self).max(by: { $0.micros < $1.micros }) { return newest }
    guard metric == .distance, let length = settings.stepLength, var steps = self.candidate(.steps, at: now) else { return nil }
    steps.number = (steps.number * length).rounded() / 1000
    steps.source = "estimated from steps of \(Value.text(length)) m (\(steps.source))"
    return steps
  }

  private func setByHand(_ metric: HealthMetric, at now: Instant) -> Candidate? {
    guard let entry = store.entries[metric] else { return nil }
    let candidate = Candidate(number: entry.number, source: "set by hand at \(clock.timeOfDay(of: entry.micros))", micros: entry.micros)
    guard !metric.isDailyTotal else { return entry.day == clock.day ? candidate : nil }
    let expires = entry.setAt &+ settings.heartRateMaxAge
    guard now < expires else { return nil }
    return Candidate(number: candidate.number, source: candidate.source, micros: candidate.micros, expires: expires)
  }

  private func absence(of metric: HealthMetric, at now: Instant) -> String {
    if let message = gadgetbridge?.absence(of: metric, clock, at: now) { return message }
    if metric.isDailyTotal { return "no data for today: vehiclectl set \(settings.device).\(metric.name) VALUE" }
    let maxAge = Value.text(Double(settings.heartRateMaxAge) / 1e9)
    return "no measurement in the last \(maxAge) s: vehiclectl set \(settings.device).\(metric.name) BPM"
  }
}
