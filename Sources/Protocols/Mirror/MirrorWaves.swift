// When what is collected goes to the mirror, and what of it. A wave holds every value that is known, permitted and collected: the
// mirror never says what it has lost, so each is told again, at most nine short writes an interval. The first comes two seconds
// after something was switched on, or the weather changed; the next ones every interval. A value that is stale is not told.
// Facts: ISM-App's ContentView.swift (2 s, 60 s) and README (every minute); main.cpp (five seconds to fetch everything).

extension MirrorMachine {
  private static let lead: Nanoseconds = 2 * .second

  var isCollecting: Bool { !keeping.now.on.isDisjoint(with: [.health, .weather]) }

  func isPermitted(_ metric: MirrorMetric) -> Bool { metric.permission.map { keeping.now.on.contains($0) } ?? true }

  private func isCollected(_ metric: MirrorMetric) -> Bool {
    keeping.now.on.contains(metric.isHealth ? .health : .weather) && isPermitted(metric)
  }

  /// The mirror has a name, and somebody wants waves.
  private var isSending: Bool {
    guard case .up(let session) = state, session.told != nil, username != nil else { return false }
    return keeping.now.on.contains(.send) && isCollecting
  }

  /// Begins or ends the waves, as it is wished now.
  mutating func plan(at now: Instant) {
    if !isSending { wave = nil } else if wave == nil { wave = now &+ Self.lead }
  }

  /// There is news: the next wave comes soon, but the display is left the time to fetch the last.
  mutating func hurry(at now: Instant) {
    guard let wave, case .up(let session) = state else { return }
    let fetched = session.lastValue.map { $0 &+ MirrorParting.fetching } ?? now
    self.wave = min(wave, max(now &+ Self.lead, fetched))
  }

  /// A wave is due.
  mutating func flush(at now: Instant, _ effects: inout Effects) {
    guard isSending else { return wave = nil }
    wave = now &+ Nanoseconds(interval) &* .second
    collected().forEach { put($0) }
  }

  /// What can be told now.
  func collected(for command: CommandID? = nil) -> [MirrorParcel] {
    MirrorMetric.allCases.compactMap { metric in
      guard isCollected(metric), let value = known[metric], let message = try? metric.message(value) else { return nil }
      return MirrorParcel(message: message, signal: metric.sent, value: metric.shown(value), commands: command.map { [$0] } ?? [])
    }
  }

  mutating func observed(_ reference: String, _ content: Reading.Content, at now: Instant, _ effects: inout Effects) {
    for metric in MirrorMetric.allCases where settings.sources[metric] == reference {
      guard case .value(let value) = content else {
        known[metric] = nil
        continue
      }
      guard known[metric] != value else { continue }
      known[metric] = value
      do throws(ValueError) {
        _ = try metric.message(value)
        unspeakable[metric] = nil
        // Health changes all the time, the weather now and then.
        if !metric.isHealth, isCollected(metric) { hurry(at: now) }
      } catch {
        let words = "the mirror cannot be told \(reference): \(error)"
        if unspeakable.updateValue(words, forKey: metric) != words { effects.append(.note(words)) }
      }
    }
  }
}

extension MirrorMetric {
  /// The value as the table declares it: other devices may count in whole numbers.
  func shown(_ value: Value) -> Value { value.number.map { .float($0) } ?? value }
}
