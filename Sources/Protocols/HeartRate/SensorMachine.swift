// The machine of a wearable sensor. It only receives. An invalid measurement is counted and dropped. If a connected sensor sends nothing,
// this is reported as a fault, because straps sleep when they are not worn.

/// The contents of one notification of a sensor.
protocol SensorMeasurement: Sendable {
  /// The properties, in the order of the schema.
  static var properties: [Property] { get }
  /// What to check if no notification arrives.
  static var remedy: String { get }
  /// Parses one notification.
  init(_ bytes: [UInt8]) throws(ValueError)
  /// Publishes the values of the measurement, by their position in `properties`.
  func publish(_ effects: inout Effects)
}

/// Receives the notifications of one sensor.
struct SensorMachine<Measurement: SensorMeasurement>: Machine {
  private enum State {
    case down
    /// The link is up; the first measurement is awaited until this time.
    case listening(until: Instant)
    /// Measurements arrive; the next one is awaited until this time.
    case receiving(until: Instant)
    /// No measurement has arrived in time.
    case silent
  }

  let schema = Schema(
    properties: Measurement.properties + [
      Property(
        "bad-messages", .int, lifetime: .retained, group: .statistics, rank: .statistic, help: "Notifications that could not be parsed"),
      Property(
        "last-bad-message", .string, lifetime: .retained, group: .statistics, rank: .statistic,
        help: "The last notification that could not be parsed"),
    ])
  private var state = State.down
  private var badMessages = 0

  private static var badMessagesIndex: Int { Measurement.properties.count }
  /// The timeout of a measurement: a strap sends about one per second.
  private static var timeout: Nanoseconds { 5 * .second }
  /// The timeout of the first measurement, which can take longer.
  private static var firstTimeout: Nanoseconds { 15 * .second }

  var nextWake: Instant? {
    switch state {
    case .listening(let until), .receiving(let until): until
    case .down, .silent: nil
    }
  }

  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started:
      effects.append(.status("waiting"))
      effects.publish(Self.badMessagesIndex, .int(0))
      effects.withdraw(Self.badMessagesIndex + 1, "none so far")
    case .linkChanged(.main, .up):
      withdraw("no measurement received yet", &effects)
      enter(.listening(until: now &+ Self.firstTimeout), "listening", nil, &effects)
    case .linkChanged(.main, .down): enter(.down, "waiting", nil, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "the sensor accepts no commands"))))
    case .stopping:
      state = .down
      effects.append(.stopped)
    case .linkChanged, .received, .sent, .cancelled, .observed, .response, .rows, .time, .stored, .leaseBegan, .leaseEnded, .wake: break
    }
    if let due = nextWake, now >= due { fallSilent(&effects) }
  }

  private mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    if case .down = state { return }
    do throws(ValueError) {
      try Measurement(bytes).publish(&effects)
      enter(.receiving(until: now &+ Self.timeout), "live", nil, &effects)
    } catch {
      badMessages &+= 1
      effects.publish(Self.badMessagesIndex, .int(badMessages))
      effects.publish(Self.badMessagesIndex + 1, .string("\(spacedHex(bytes.prefix(32))): \(error)"))
    }
  }

  private mutating func fallSilent(_ effects: inout Effects) {
    let message = "connected, but no data: \(Measurement.remedy)"
    withdraw(message, &effects)
    enter(.silent, "silent", message, &effects)
  }

  private func withdraw(_ message: String, _ effects: inout Effects) {
    for index in Measurement.properties.indices { effects.withdraw(index, message) }
  }

  /// Enters a state, and publishes it as the device's status and fault.
  private mutating func enter(_ new: State, _ status: String, _ fault: String?, _ effects: inout Effects) {
    let old = state
    state = new
    if case .receiving = old, case .receiving = new { return }
    effects.append(.status(status))
    effects.append(.fault(fault))
  }
}
