// Parses the board's bytes and publishes values with every message, and statistics once per second. Marks of the board (255, a latch)
// become reasons, not values.

extension ELCommMachine {
  /// More messages per second are a fault.
  private static let maxInSecond = 100
  /// More consecutive messages without a VESC are a fault.
  private static let maxMute = 10

  mutating func restore(_ kept: [String: [UInt8]], _ effects: inout Effects) {
    let hint = keeping.restore(kept, &effects)
    dialect = settings.dialect ?? hint
    if let given = settings.dialect {
      effects.publish(ELCommSignal.dialect.rawValue, .string(given.rawValue))
    } else {
      effects.withdraw(ELCommSignal.dialect.rawValue, "not detected yet")
    }
    effects.withdraw(ELCommSignal.mode.rawValue, "not supported by ELComm")
    effects.withdraw(ELCommSignal.lastBadMessage.rawValue, "none so far")
    for counter in [ELCommSignal.messages, .missed, .badMessages] { effects.publish(counter.rawValue, .int(0)) }
    effects.append(.status(condition.word))
  }

  // MARK: Received bytes

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    switch state {
    case .down, .stopping: return
    default: break
    }
    if lastByteAt != .min, now &- lastByteAt > Self.gap { decoder.flush() }
    lastByteAt = now
    let before = counters.messages
    for byte in bytes {
      guard let message = decoder.take(byte) else { continue }
      self.message = message
      count(at: now)
      keeping.ride(message.distance, at: now)
      heard(at: now, &effects)
    }
    publishBadRuns(&effects)
    guard let message, counters.messages != before else { return }
    counters.badSince = decoder.badRuns
    lastHeard = now
    publish(message, at: now, &effects)
  }

  private mutating func count(at now: Instant) {
    counters.messages &+= 1
    if counters.second == .min || now &- counters.second >= .second {
      (counters.isFlooded, counters.second, counters.inSecond) = (counters.inSecond > Self.maxInSecond, now, 0)
    }
    counters.inSecond += 1
    if counters.inSecond > Self.maxInSecond { counters.isFlooded = true }
  }

  mutating func flush(_ effects: inout Effects) {
    decoder.flush()
    publishBadRuns(&effects)
  }

  // MARK: Published values

  private mutating func publish(_ message: ELCommMessage, at now: Instant, _ effects: inout Effects) {
    let standing = message.standing
    counters.mute = standing == .noVESC ? min(counters.mute + 1, Self.maxMute) : 0
    if let message = standing.message {
      for signal in [ELCommSignal.speed, .battery, .batteryRaw] { effects.withdraw(signal.rawValue, message) }
    } else {
      effects.publish(ELCommSignal.speed.rawValue, .float(ELCommSignal.kilometresPerHour(message.speed)))
      effects.publish(ELCommSignal.batteryRaw.rawValue, .int(message.battery))
      switch message.charge {
      case .value(let value): effects.publish(ELCommSignal.battery.rawValue, value)
      case .absent(let message): effects.withdraw(ELCommSignal.battery.rawValue, message)
      }
    }
    effects.publish(ELCommSignal.connected.rawValue, .bool(message.connected))
    effects.publish(ELCommSignal.distance.rawValue, .float(ELCommSignal.kilometres(message.distance)))
    publishBuzzer(&effects)
    publishExtra(&effects)
    publishCounters(at: now, &effects)
    switch standing {
    case _ where counters.isFlooded:
      turn(to: .degraded("more than \(Self.maxInSecond) messages per second: reset the board"), &effects)
    case .live: turn(to: .live, &effects)
    case .latchedOff: turn(to: .off, &effects)
    case .noVESC: turn(to: .noVESC(isLasting: counters.mute >= Self.maxMute), &effects)
    }
  }

  mutating func publishBuzzer(_ effects: inout Effects) {
    if let known = buzzer.known { effects.publish(ELCommSignal.buzzer.rawValue, .bool(known)) }
  }

  mutating func publishExtra(_ effects: inout Effects) {
    guard message != nil else { return }
    if decoder.extra.isEmpty {
      effects.withdraw(ELCommSignal.extra.rawValue, "the board sends no additional fields")
    } else {
      effects.publish(ELCommSignal.extra.rawValue, .list(decoder.extra))
    }
  }

  /// At most once per second.
  mutating func publishCounters(at now: Instant, _ effects: inout Effects) {
    guard counters.published == .min || now &- counters.published >= .second else { return }
    counters.published = now
    effects.publish(ELCommSignal.messages.rawValue, .int(counters.messages))
    effects.publish(ELCommSignal.missed.rawValue, .int(counters.missed))
    guard misses == 0 else { return }
    let summary = timing.summary(at: now)
    if let rate = summary.rate { effects.publish(ELCommSignal.cycleRate.rawValue, .float((rate * 10).rounded() / 10)) }
    if let roundTrip = summary.roundTrip?.median {
      effects.publish(ELCommSignal.roundTrip.rawValue, .float(Double(roundTrip / .microsecond) / 1000))
    }
  }

  private mutating func publishBadRuns(_ effects: inout Effects) {
    guard counters.badShown != (decoder.badRuns, decoder.lastBad.count) else { return }
    counters.badShown = (decoder.badRuns, decoder.lastBad.count)
    effects.publish(ELCommSignal.badMessages.rawValue, .int(decoder.badRuns))
    effects.publish(ELCommSignal.lastBadMessage.rawValue, .string(printable(decoder.lastBad, limit: 80)))
  }
}
