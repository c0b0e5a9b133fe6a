// Handles received bytes: decodes messages, detects pauses, invalid data and floods, and publishes the values of the last message. For a
// special value of the board, such as 255, the property is absent, and the reason explains the value.

struct ELCommReceiver: Sendable {
  /// The maximum pause between a message and its additional fields.
  private static let maxPauseBeforeFields: Nanoseconds = 50 * .millisecond
  /// The maximum pause within a message.
  private static let maxPauseInMessage: Nanoseconds = 250 * .millisecond
  /// How long invalid data is tolerated.
  private static let garbleLimit: Nanoseconds = 2 * .second
  /// The maximum number of messages per second; a higher rate is a fault.
  private static let maxInSecond = 100
  /// The maximum number of consecutive messages that report no VESC; more are a fault.
  private static let maxWithoutVESC = 10

  private(set) var decoder = ELCommDecoder()
  /// The number of messages since the daemon started.
  private(set) var messages = 0
  /// When the last message arrived.
  private(set) var lastMessageAt: Instant = .min
  /// The last message on this link.
  private var message: ELCommMessage?
  private var lastByteAt: Instant = .min
  private var cameUpAt: Instant = .min
  /// The number of invalid runs at the last message.
  private var badRunsBefore = 0
  /// The last published number of invalid runs, and the length of the last run.
  private var badRunsPublished = (runs: 0, length: 0)
  /// The number of consecutive messages that report no VESC.
  private var withoutVESC = 0
  /// The start of the current second.
  private var second: Instant = .min
  /// The number of messages in the current second.
  private var inSecond = 0
  private var isFlooded = false

  var badRuns: Int { decoder.badRuns }

  /// When the additional fields of the last message count as complete.
  var nextWake: Instant? { decoder.isOpen && !decoder.buffer.isEmpty ? lastByteAt &+ Self.maxPauseBeforeFields : nil }

  /// Whether data has arrived for a while, and still arrives, without a complete message.
  func isGarbled(at now: Instant) -> Bool {
    badRuns != badRunsBefore && now &- max(lastMessageAt, cameUpAt) >= Self.garbleLimit && now &- lastByteAt < Self.garbleLimit
  }

  /// The condition of the board according to the last message.
  var condition: ELCommStatus.Condition {
    if isFlooded { return .degraded("more than \(Self.maxInSecond) messages per second: reset the board") }
    return switch message?.boardState {
    case .live, nil: .live
    case .latchedOff: .off
    case .noVESC: .noVESC(isLasting: withoutVESC >= Self.maxWithoutVESC)
    }
  }

  mutating func linkCameUp(at now: Instant) { cameUpAt = now }

  /// Resets the state for a new or lost link.
  mutating func reset() {
    decoder.reset()
    message = nil
    badRunsBefore = badRuns
    (withoutVESC, inSecond, isFlooded) = (0, 0, false)
  }

  // MARK: Bytes

  /// Detects pauses before further bytes are handled.
  mutating func begin(at now: Instant) {
    if lastByteAt != .min, now &- lastByteAt > Self.maxPauseInMessage { decoder.flush() }
    lastByteAt = now
  }

  /// Handles one byte; returns the message that it completes, if any.
  mutating func decode(_ byte: UInt8, at now: Instant) -> ELCommMessage? {
    guard let message = decoder.decode(byte) else { return nil }
    self.message = message
    messages &+= 1
    if second == .min || now &- second >= .second {
      (isFlooded, second, inSecond) = (inSecond > Self.maxInSecond, now, 0)
    }
    inSecond += 1
    if inSecond > Self.maxInSecond { isFlooded = true }
    return message
  }

  /// Publishes the last message that the received bytes completed, if any. Called after all of these bytes were decoded.
  mutating func end(hasMessage: Bool, at now: Instant, _ effects: inout Effects) {
    publishBadRuns(&effects)
    guard hasMessage, let message else { return }
    badRunsBefore = badRuns
    lastMessageAt = now
    withoutVESC = message.boardState == .noVESC ? min(withoutVESC + 1, Self.maxWithoutVESC) : 0
    publish(message, &effects)
    publishExtra(&effects)
  }

  /// Completes additional fields after a pause.
  mutating func expire(at now: Instant, _ effects: inout Effects) {
    if decoder.isOpen, now >= lastByteAt &+ Self.maxPauseBeforeFields { close(&effects) }
  }

  /// Completes the last message.
  mutating func close(_ effects: inout Effects) {
    decoder.close()
    publishExtra(&effects)
  }

  /// Discards incomplete data.
  mutating func flush(_ effects: inout Effects) {
    decoder.flush()
    publishBadRuns(&effects)
  }

  // MARK: Published values

  private func publish(_ message: ELCommMessage, _ effects: inout Effects) {
    if let reason = message.boardState.message {
      for property in [ELCommProperty.speed, .battery, .batteryRaw] { effects.withdraw(property.rawValue, reason) }
    } else {
      effects.publish(ELCommProperty.speed.rawValue, .float(ELCommProperty.kilometresPerHour(message.speed)))
      effects.publish(ELCommProperty.batteryRaw.rawValue, .int(message.battery))
      switch message.charge {
      case .value(let value): effects.publish(ELCommProperty.battery.rawValue, value)
      case .absent(let reason): effects.withdraw(ELCommProperty.battery.rawValue, reason)
      }
    }
    effects.publish(ELCommProperty.connected.rawValue, .bool(message.connected))
    effects.publish(ELCommProperty.distance.rawValue, .float(ELCommProperty.kilometres(message.distance)))
  }

  private func publishExtra(_ effects: inout Effects) {
    guard message != nil else { return }
    if decoder.extra.isEmpty {
      effects.withdraw(ELCommProperty.extra.rawValue, "the board sends no additional fields")
    } else {
      effects.publish(ELCommProperty.extra.rawValue, .list(decoder.extra))
    }
  }

  private mutating func publishBadRuns(_ effects: inout Effects) {
    guard badRunsPublished != (decoder.badRuns, decoder.lastBad.count) else { return }
    badRunsPublished = (decoder.badRuns, decoder.lastBad.count)
    effects.publish(ELCommProperty.badMessages.rawValue, .int(decoder.badRuns))
    effects.publish(ELCommProperty.lastBadMessage.rawValue, .string(printable(decoder.lastBad, limit: 80)))
  }
}
