// The `health` machine: values that clients set, and an export that is checked once a minute. Values of another day are not published. The
// machine requests the time before it stamps a value, every five minutes while there is a value, and at midnight, because the wall clock
// can be set at any time, especially on computers without a battery-backed clock.

/// The activity of a person on the current day.
public struct HealthMachine: Machine {
  /// The state of the machine.
  private enum State {
    /// The stored values have not been restored yet.
    case new
    /// The time is known.
    case timeKnown
    /// The time was requested.
    case requestingTime
  }

  public let schema: Schema
  let settings: HealthSettings
  private var state = State.new
  var clock = DayClock(WallTime(microseconds: 0), at: 0)
  var store = HealthStore()
  var gadgetbridge: Gadgetbridge?
  /// The published value of each metric.
  var published: [HealthMetric: Candidate] = [:]
  /// The published source of each metric, or the reason why there is no value.
  var publishedSource: [HealthMetric: String] = [:]
  private var lastTimeReceived: Instant = 0

  static let timeRequestPeriod: Nanoseconds = 300 * .second
  /// The minimum pause between two time requests, which prevents a second request if the clock was set back slightly at midnight.
  private static let minTimeRequestPause: Nanoseconds = .second

  init(_ settings: HealthSettings) {
    self.settings = settings
    schema = Schema(properties: HealthMetric.properties(heartRateMaxAge: settings.heartRateMaxAge))
    gadgetbridge = settings.gadgetbridge.map { Gadgetbridge($0, device: settings.gadgetbridgeDevice, health: settings.device) }
  }

  public var nextWake: Instant? {
    switch state {
    case .new: nil
    case .requestingTime: heartRateExpires
    case .timeKnown: [heartRateExpires, nextTimeRequest].compactMap(\.self).min()
    }
  }

  /// When the time is requested next.
  private var nextTimeRequest: Instant? {
    let hasCurrentValue = !published.isEmpty || store.hasValue(onOrAfter: clock.day)
    let day = hasCurrentValue || gadgetbridge != nil ? max(clock.nextDay, lastTimeReceived &+ Self.minTimeRequestPause) : nil
    return [gadgetbridge?.due, hasCurrentValue ? lastTimeReceived &+ Self.timeRequestPeriod : nil, day].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall):
      clock = DayClock(wall, at: now)
      if !store.restore(restored[HealthStore.key], clock, at: now) {
        effects.append(.event(name: "state-corrupt", text: damagedSettingsMessage(["some values"])))
      }
      timeReceived(at: now, &effects)
    case .time(let wall):
      guard case .requestingTime = state else { return }
      if clock.set(wall, at: now) {
        gadgetbridge?.invalidate()
        published = [:]  // the ages have changed
      }
      timeReceived(at: now, &effects)
    case .perform(let id, .set(let property, let value)):
      guard let metric = HealthMetric(rawValue: property), let number = value.number, metric.value(number) != nil else {
        return effects.append(.complete(id, .failure(.refused(code: .readOnly, "the property is read-only"))))
      }
      store.set(metric, number, for: id)
      requestTime(&effects)
    case .perform(let id, .run): effects.append(.complete(id, .failure(.refused(code: .notSupported, "no such action"))))
    case .cancelled(let id): store.cancel(id)
    case .stored(HealthStore.key, let failure):
      let (commands, result) = store.stored(failure)
      store.advance(&effects)
      publishChanges(at: now, &effects)
      for id in commands { effects.append(.complete(id, result)) }
    case .rows(let id, let answer):
      gadgetbridge?.handle(id, answer, clock, at: now, &effects)
      publishChanges(at: now, &effects)
    case .stopping:
      // The values are still stored, but their commands fail now.
      store.stamp(clock, at: now)
      store.advance(&effects)
      for id in store.removeAllCommands() { effects.append(.complete(id, .failure(.notConnected("the device is being stopped")))) }
      effects.append(.stopped)
    case .wake, .linkChanged, .received, .sent, .observed, .response, .stored, .leaseBegan, .leaseEnded: break
    }
    if case .new = state { return }
    if let expires = heartRateExpires, now >= expires { publishChanges(at: now, &effects) }
    if let due = nextTimeRequest, now >= due { requestTime(&effects) }
  }

  private mutating func requestTime(_ effects: inout Effects) {
    guard case .timeKnown = state else { return }
    state = .requestingTime
    effects.append(.requestTime)
  }

  private mutating func timeReceived(at now: Instant, _ effects: inout Effects) {
    (state, lastTimeReceived) = (.timeKnown, now)
    store.stamp(clock, at: now)
    store.advance(&effects)
    gadgetbridge?.check(clock, at: now, &effects)
    publishChanges(at: now, &effects)
  }
}
