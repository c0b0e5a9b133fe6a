// When what is collected goes to the mirror, and what of it. A wave holds every value that is known, permitted and collected: the
// mirror never says what it has lost, so each is told again, at most nine short writes an interval. The first comes two seconds
// after something was switched on, the next ones every interval; new weather does not wait longer than half a minute. A value that
// is stale is not told; what the mirror shows of it is taken back where the app does that: the sums of another day, the weather.
// Facts: ISM-App's ContentView.swift (2 s, 60 s), README (every minute), HealthData.swift and WeatherData.swift (what is not known).

extension MirrorMachine {
  private static let lead: Nanoseconds = 2 * .second
  /// Between two waves that new weather causes: a thermometer may say something else every second.
  private static let newsApart: Nanoseconds = 30 * .second
  /// So long a value is absent before it is taken back: at a start its source needs a moment.
  private static let grace: Nanoseconds = 10 * .second

  var isCollecting: Bool { !keeping.now.on.isDisjoint(with: [.health, .weather]) }

  func isPermitted(_ metric: MirrorMetric) -> Bool { metric.permission.map { keeping.now.on.contains($0) } ?? true }

  private func isCollected(_ metric: MirrorMetric) -> Bool {
    keeping.now.on.contains(metric.isHealth ? .health : .weather) && isPermitted(metric)
  }

  /// The mirror has a name, and somebody wants waves.
  private var isSending: Bool {
    guard case .up(let session) = state, session.told != nil, username != nil else { return false }
    return isToSend
  }

  /// Somebody wants waves.
  var isToSend: Bool { keeping.now.on.contains(.send) && isCollecting }

  /// Begins or ends the waves, as it is wished now.
  mutating func plan(at now: Instant) {
    if !isSending { wave = nil } else if wave == nil { wave = now &+ Self.lead }
  }

  /// There is news: the next wave comes soon, but not sooner than so long after the last value.
  mutating func hurry(at now: Instant, apart: Nanoseconds = MirrorReading.time) {
    guard let wave, case .up(let session) = state else { return }
    self.wave = min(wave, max(now &+ Self.lead, session.reading.lastValue.map { $0 &+ apart } ?? now))
  }

  /// A wave is due.
  mutating func flush(at now: Instant, _ effects: inout Effects) {
    guard isSending, case .up(let session) = state else { return wave = nil }
    // Waves that follow each other closely would lose one heart rate after the other.
    if session.reading.mayLackHeart, let end = session.reading.end, now < end { return wave = end }
    wave = now &+ Nanoseconds(interval) &* .second
    collected().forEach { put($0) }
    effects.append(.tellTime)
  }

  /// The time that was asked for with a wave.
  mutating func told(_ time: WallTime, at now: Instant) {
    _ = clock.set(time, at: now)
    for metric in MirrorMetric.allCases {
      guard isCollected(metric), let unknown = metric.unknown, let value = metric.unknownValue, let day = keeping.told[metric],
        let since = absentSince[metric], now >= since &+ Self.grace, !metric.isHealth || clock.day > day
      else { continue }
      put(MirrorParcel(message: unknown, metric: metric, value: value))
    }
  }

  /// The heart rate as it is now, for the one that the display may have lost.
  mutating func repeatHeart() {
    guard case .up(var session) = state else { return }
    session.reading.mayLackHeart = false
    state = .up(session)
    collected().filter { $0.metric == .heartRate }.forEach { put($0) }
  }

  /// What can be told now.
  func collected(for command: CommandID? = nil) -> [MirrorParcel] {
    MirrorMetric.allCases.compactMap { metric in
      guard isCollected(metric), let value = known[metric], let message = try? metric.message(value) else { return nil }
      return MirrorParcel(message: message, metric: metric, value: metric.shown(value), commands: command.map { [$0] } ?? [])
    }
  }

  mutating func observed(_ reference: String, _ content: Reading.Content, at now: Instant, _ effects: inout Effects) {
    for metric in MirrorMetric.allCases where settings.sources[metric] == reference {
      switch content {
      case .absent(let reason):
        if known.removeValue(forKey: metric) != nil || absentSince[metric] == nil { absentSince[metric] = now }
        missing[metric] = "\(reference): \(reason)"
      case .value(let value) where known[metric] != value: learn(value, of: metric, reference, at: now, &effects)
      case .value: break
      }
    }
  }

  private mutating func learn(_ value: Value, of metric: MirrorMetric, _ reference: String, at now: Instant, _ effects: inout Effects) {
    absentSince[metric] = nil
    let before = known.updateValue(value, forKey: metric).flatMap { try? metric.message($0) }
    do throws(ValueError) {
      let message = try metric.message(value)
      missing[metric] = nil
      // Health changes all the time, the weather now and then.
      if !metric.isHealth, isCollected(metric), message != before { hurry(at: now, apart: Self.newsApart) }
    } catch {
      let words = "\(reference): \(error)"
      if missing.updateValue(words, forKey: metric) != words { effects.append(.note("the mirror cannot be told \(words)")) }
    }
  }

  /// Why nothing can be told now, as far as that is known, and how to mend it.
  var nothingKnown: String {
    let collected = MirrorMetric.allCases.filter {
      settings.sources[$0] != nil && keeping.now.on.contains($0.isHealth ? .health : .weather)
    }
    let reasons = collected.filter(isPermitted).compactMap { missing[$0] }
    if let reason = reasons.first { return "no value can be sent now; \(reason)" }
    let forbidden = collected.filter { !isPermitted($0) }.compactMap { $0.permission?.rawValue }
    return forbidden.first.map { "no value is permitted: vehiclectl set \(settings.device).\($0) on" }
      ?? "no value is known yet: try again in a moment"
  }
}

extension MirrorMetric {
  /// The value as the table declares it: other devices may count in whole numbers.
  func shown(_ value: Value) -> Value { value.number.map { .float($0) } ?? value }
}
