// Statistics of the dialogue, published at most once per second.

struct ELCommStatistics: Sendable {
  private var missed = 0
  private var timing: Timing
  /// When the statistics were last published; `.min` if never.
  private var published: Instant = .min

  init(period: Nanoseconds) { timing = Timing(period: period) }

  mutating func responded(_ roundTrip: Nanoseconds, at now: Instant) { timing.add(answered: now, roundTrip: roundTrip, lateness: nil) }
  mutating func missedMessage() { missed &+= 1 }
  mutating func resetTiming() { timing.removeAll() }

  /// Publishes the statistics. `messages`: the number of messages received so far; `withTimes`: the times are valid, because the board
  /// responds.
  mutating func publish(messages: Int, withTimes: Bool, at now: Instant, _ effects: inout Effects) {
    guard published == .min || now &- published >= .second else { return }
    published = now
    effects.publish(ELCommProperty.messages.rawValue, .int(messages))
    effects.publish(ELCommProperty.missed.rawValue, .int(missed))
    guard withTimes else { return }
    let summary = timing.summary(at: now)
    if let rate = summary.rate { effects.publish(ELCommProperty.cycleRate.rawValue, .float((rate * 10).rounded() / 10)) }
    if let roundTrip = summary.roundTrip?.median {
      effects.publish(ELCommProperty.roundTrip.rawValue, .float(Double(roundTrip / .microsecond) / 1000))
    }
  }
}
