// The published value of each metric: the newer one of the set and the imported value. Totals are shown only on their day, a heart
// rate until it expires. An estimated value is marked as such.

extension HealthMachine {
  /// A value that may be shown.
  struct Told: Sendable, Equatable {
    var number: Double
    var source: String
    /// Its time, in microseconds since the Unix epoch.
    var micros: Int64
    /// When it expires; nil: at midnight.
    var end: Instant?
  }

  /// When the published heart rate expires.
  var heartRateEnds: Instant? { shown[.heartRate]?.end }

  /// Publishes what has changed.
  mutating func review(at now: Instant, _ effects: inout Effects) {
    for metric in HealthMetric.allCases { show(metric, told(metric, at: now), at: now, &effects) }
    let word = shown.isEmpty ? "ready" : "live"
    if word != status { effects.append(.status(word)) }
    status = word
    if gadgetbridge?.fault != fault { effects.append(.fault(gadgetbridge?.fault)) }
    fault = gadgetbridge?.fault
  }

  private mutating func show(_ metric: HealthMetric, _ told: Told?, at now: Instant, _ effects: inout Effects) {
    guard let told, let value = metric.value(told.number) else {
      shown[metric] = nil
      let reason = absence(of: metric, at: now)
      guard said[metric] != reason else { return }
      said[metric] = reason
      effects.withdraw(metric.rawValue, reason)
      return effects.withdraw(metric.source, reason)
    }
    let before = shown[metric]
    shown[metric] = told
    if before?.number == told.number, before?.micros == told.micros, said[metric] == told.source { return }
    said[metric] = told.source
    let age = clock.age(of: told.micros, at: now)
    effects.publish(metric.rawValue, value, age: age)
    effects.publish(metric.source, .string(told.source), age: age)
  }

  private func told(_ metric: HealthMetric, at now: Instant) -> Told? {
    let told = [setByHand(metric, at: now), gadgetbridge?.told(metric, clock, fresh: settings.heartRateFresh, at: now)].compactMap(\.self)
    if let newest = told.max(by: { $0.micros < $1.micros }) { return newest }
    guard metric == .distance, let length = settings.stepLength, var steps = self.told(.steps, at: now) else { return nil }
    steps.number = (steps.number * length).rounded() / 1000
    steps.source = "estimated from steps of \(Value.text(length)) m (\(steps.source))"
    return steps
  }

  private func setByHand(_ metric: HealthMetric, at now: Instant) -> Told? {
    guard let entry = keeping.entries[metric] else { return nil }
    let told = Told(number: entry.number, source: "set by hand at \(clock.words(of: entry.micros))", micros: entry.micros)
    guard !metric.isSum else { return entry.day == clock.day ? told : nil }
    let end = entry.set &+ settings.heartRateFresh
    guard now < end else { return nil }
    return Told(number: told.number, source: told.source, micros: told.micros, end: end)
  }

  private func absence(of metric: HealthMetric, at now: Instant) -> String {
    if let words = gadgetbridge?.absence(of: metric, clock, at: now) { return words }
    if metric.isSum { return "no data for today: vehiclectl set \(metric.name) VALUE" }
    return "no measurement in the last \(Value.text(Double(settings.heartRateFresh) / 1e9)) s: vehiclectl set heart-rate BPM"
  }
}
