// The machine of a worn sensor: it listens, and never says anything. A measurement that is not whole is counted and dropped; a
// sensor that is connected and silent is named, for straps sleep when nobody wears them.

/// What one notification of a sensor holds.
protocol SensorMeasurement: Sendable {
  /// What it has to tell, in the order of the schema.
  static var properties: [Property] { get }
  /// What to look at when nothing comes.
  static var remedy: String { get }
  /// Reads one notification, or says why it is none.
  init(_ bytes: [UInt8]) throws(ValueError)
  /// Publishes what it says.
  func publish(_ effects: inout Effects)
}

/// Listens to one sensor.
struct SensorMachine<Measurement: SensorMeasurement>: Machine {
  private enum State {
    case down
    /// The link is up; something must come until then.
    case listening(until: Instant)
    /// Measurements come; the next must until then.
    case live(until: Instant)
    /// Nothing came for too long.
    case silent
  }

  let schema = Schema(
    properties: Measurement.properties + [
      Property("bad-messages", .int, lifetime: .retained, help: "Notifications that were no measurement"),
      Property("last-bad-message", .string, lifetime: .retained, help: "The last of them"),
    ])
  private var state = State.down
  private var badMessages = 0

  private static var badMessagesIndex: Int { Measurement.properties.count }
  /// A strap tells about once a second.
  private static var timeout: Nanoseconds { 5 * .second }
  /// It may measure for a while before it tells.
  private static var firstTimeout: Nanoseconds { 15 * .second }

  var nextWake: Instant? {
    switch state {
    case .listening(let until), .live(let until): until
    case .down, .silent: nil
    }
  }

  mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started:
      effects.append(.status("waiting"))
      effects.publish(Self.badMessagesIndex, .int(0))
      effects.withdraw(Self.badMessagesIndex + 1, "there was none")
    case .linkChanged(.main, .up):
      withdraw("the sensor has told nothing yet", &effects)
      turn(to: .listening(until: now &+ Self.firstTimeout), "listening", nil, &effects)
    case .linkChanged(.main, .down): turn(to: .down, "waiting", nil, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "unknown", "a sensor is only listened to"))))
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
      turn(to: .live(until: now &+ Self.timeout), "live", nil, &effects)
    } catch {
      badMessages &+= 1
      effects.publish(Self.badMessagesIndex, .int(badMessages))
      effects.publish(Self.badMessagesIndex + 1, .string("\(spacedHex(bytes.prefix(32))): \(error)"))
    }
  }

  private mutating func fallSilent(_ effects: inout Effects) {
    let words = "the sensor is connected and says nothing: \(Measurement.remedy)"
    withdraw(words, &effects)
    turn(to: .silent, "silent", words, &effects)
  }

  private func withdraw(_ words: String, _ effects: inout Effects) {
    for index in Measurement.properties.indices { effects.withdraw(index, words) }
  }

  private mutating func turn(to new: State, _ word: String, _ fault: String?, _ effects: inout Effects) {
    let old = state
    state = new
    if case .live = old, case .live = new { return }
    effects.append(.status(word))
    effects.append(.fault(fault))
  }
}
