// The update cycles. Each update contains all values that are known, permitted and switched on (at most nine short writes), because the
// mirror does not report lost values. The first update is sent two seconds after a setting was switched on; then there is one update per
// interval. A changed weather value is sent within half a minute. A stale value is not sent. Weather and the totals of an earlier day are
// withdrawn from the mirror, as the app does.
// Source: ISM-App's ContentView.swift (2 s, 60 s), README (every minute), HealthData.swift and WeatherData.swift (unknown values).

extension MirrorMachine {
  private static let firstUpdateDelay: Nanoseconds = 2 * .second
  /// The minimum interval between updates caused by changes in the weather, in case a value changes every second.
  private static let weatherInterval: Nanoseconds = 30 * .second
  /// How long a value must be absent before it is withdrawn, because its source needs time after a start.
  private static let withdrawalDelay: Nanoseconds = 10 * .second

  var isCollecting: Bool { isOn(.health) || isOn(.weather) }

  func isPermitted(_ metric: MirrorMetric) -> Bool { metric.permission.map(isOn) ?? true }

  private func isCollected(_ metric: MirrorMetric) -> Bool {
    isOn(metric.isHealth ? .health : .weather) && isPermitted(metric)
  }

  /// Whether updates are on and the mirror has a name.
  private var isSending: Bool {
    guard case .up(let session) = state, session.acknowledgedName != nil, username != nil else { return false }
    return isUpdating
  }

  /// Whether updates are on.
  var isUpdating: Bool { isOn(.send) && isCollecting }

  /// Starts or stops the update cycles according to the settings.
  mutating func scheduleUpdates(at now: Instant) {
    if !isSending { nextUpdate = nil } else if nextUpdate == nil { nextUpdate = now &+ Self.firstUpdateDelay }
  }

  /// Makes the next update due soon, but not sooner than `pause` nanoseconds after the last value.
  mutating func expedite(at now: Instant, pause: Nanoseconds = DisplayReadWindow.duration) {
    guard let nextUpdate, case .up(let session) = state else { return }
    self.nextUpdate = min(nextUpdate, max(now &+ Self.firstUpdateDelay, session.readWindow.lastValue.map { $0 &+ pause } ?? now))
  }

  /// Sends an update.
  mutating func sendUpdate(at now: Instant, _ effects: inout Effects) {
    guard isSending, case .up(let session) = state else { return nextUpdate = nil }
    // Wait until the display has finished reading: otherwise it would miss the heart rate again.
    if session.readWindow.hasPossiblyMissedHeartRate, let end = session.readWindow.end, now < end { return nextUpdate = end }
    nextUpdate = now &+ Nanoseconds(interval) &* .second
    collected().forEach { enqueue($0) }
    effects.append(.requestTime)
  }

  /// Handles the time that was requested with an update: withdraws absent weather values, and absent totals of an earlier day.
  mutating func timeReceived(_ time: WallTime, at now: Instant) {
    _ = clock.set(time, at: now)
    for metric in MirrorMetric.allCases {
      guard isCollected(metric), let message = metric.withdrawalMessage, let value = metric.withdrawnValue,
        let day = acknowledgements.days[metric], let since = absentSince[metric], now >= since &+ Self.withdrawalDelay,
        !metric.isHealth || clock.day > day
      else { continue }
      enqueue(MirrorPendingValue(message: message, metric: metric, value: value))
    }
  }

  /// Sends the current heart rate again, because the display may have lost the last one.
  mutating func resendHeartRate() {
    guard case .up(var session) = state else { return }
    session.readWindow.hasPossiblyMissedHeartRate = false
    state = .up(session)
    collected().filter { $0.metric == .heartRate }.forEach { enqueue($0) }
  }

  /// The values that can be sent now.
  func collected(for command: CommandID? = nil) -> [MirrorPendingValue] {
    MirrorMetric.allCases.compactMap { metric in
      guard isCollected(metric), let value = known[metric], let message = try? metric.message(value) else { return nil }
      return MirrorPendingValue(message: message, metric: metric, value: metric.publishedValue(value), commands: command.map { [$0] } ?? [])
    }
  }

  mutating func observed(_ reference: String, _ content: Reading.Content, at now: Instant, _ effects: inout Effects) {
    for metric in MirrorMetric.allCases where settings.sources[metric] == reference {
      switch content {
      case .absent(let reason):
        if known.removeValue(forKey: metric) != nil || absentSince[metric] == nil { absentSince[metric] = now }
        missing[metric] = "\(reference): \(reason)"
      case .value(let value) where known[metric] != value: update(value, of: metric, reference, at: now, &effects)
      case .value: break
      }
    }
  }

  private mutating func update(_ value: Value, of metric: MirrorMetric, _ reference: String, at now: Instant, _ effects: inout Effects) {
    absentSince[metric] = nil
    let before = known.updateValue(value, forKey: metric).flatMap { try? metric.message($0) }
    do throws(ValueError) {
      let message = try metric.message(value)
      missing[metric] = nil
      // Health values change constantly, so they wait for the next update.
      if !metric.isHealth, isCollected(metric), message != before { expedite(at: now, pause: Self.weatherInterval) }
    } catch {
      let message = "\(reference): \(error)"
      if missing.updateValue(message, forKey: metric) != message { effects.append(.note("value cannot be sent: \(message)")) }
    }
  }

  /// Why no value can be sent now, and what to do.
  var noDataReason: String {
    let collected = MirrorMetric.allCases.filter { settings.sources[$0] != nil && isOn($0.isHealth ? .health : .weather) }
    let reasons = collected.filter(isPermitted).compactMap { missing[$0] }
    if let reason = reasons.first { return "no value to send: \(reason)" }
    let forbidden = collected.filter { !isPermitted($0) }.compactMap { $0.permission?.name }
    return forbidden.first.map { "no value is permitted: vehiclectl set \(settings.device).\($0) on" }
      ?? "no value is known yet: try again in a moment"
  }
}

extension MirrorMetric {
  /// The value in the type of the property `sent-…`: numbers are floats, but other devices may publish integers.
  func publishedValue(_ value: Value) -> Value { value.number.map { .float($0) } ?? value }
}
