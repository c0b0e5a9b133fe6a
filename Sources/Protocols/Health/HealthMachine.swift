// The `health` machine: values that are set, and an export that is looked at once a minute. It knows what day it is, and never
// shows what is of another one. It asks for the time before it stamps what is set, every five minutes while a value stands, and
// at midnight: the wall's clock is set now and then, above all on machines that boot in the past.

/// Holds what a person's body did today.
public struct HealthMachine: Machine {
  /// What the machine is at.
  private enum State {
    /// Nothing was restored yet.
    case new
    /// The time is known as it was told last.
    case knowing
    /// The time was asked for.
    case asking
  }

  public let schema: Schema
  let settings: HealthSettings
  private var state = State.new
  var clock = DayClock(WallTime(microseconds: 0), at: 0)
  var keeping = HealthKeeping()
  var gadgetbridge: Gadgetbridge?
  /// What is shown of each metric.
  var shown: [HealthMetric: Told] = [:]
  /// What was last said of each metric's source, or why there is no value.
  var said: [HealthMetric: String] = [:]
  var status: String?
  var fault: String?
  private var lastTold: Instant = 0

  static let tellPeriod: Nanoseconds = 300 * .second
  /// Where the clock was set back by a little at midnight.
  private static let breath: Nanoseconds = .second

  init(_ settings: HealthSettings) {
    self.settings = settings
    schema = Schema(properties: HealthMetric.properties(heartRateFresh: settings.heartRateFresh))
    gadgetbridge = settings.gadgetbridge.map { Gadgetbridge($0, device: settings.gadgetbridgeDevice) }
  }

  public var nextWake: Instant? {
    switch state {
    case .new: nil
    case .asking: heartRateEnds
    case .knowing: [heartRateEnds, timeIsDue].compactMap(\.self).min()
    }
  }

  /// When the time is to be asked for.
  private var timeIsDue: Instant? {
    let lasts = !shown.isEmpty || keeping.lasts(after: clock.day)
    let day = lasts || gadgetbridge != nil ? max(clock.nextDay, lastTold &+ Self.breath) : nil
    return [gadgetbridge?.due, lasts ? lastTold &+ Self.tellPeriod : nil, day].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started(let restored, let wall):
      clock = DayClock(wall, at: now)
      if !keeping.restore(restored[HealthKeeping.key], clock, at: now) {
        effects.append(.event(name: "damaged", text: keptWords(["some values"])))
      }
      timeWasTold(at: now, &effects)
    case .time(let wall):
      guard case .asking = state else { return }
      if clock.set(wall, at: now) {
        gadgetbridge?.forget()
        shown = [:]  // by this clock each is of another age
      }
      timeWasTold(at: now, &effects)
    case .perform(let id, .set(let property, let value)):
      guard let metric = HealthMetric(rawValue: property), let number = value.number, metric.value(number) != nil else {
        return effects.append(.complete(id, .failure(.refused(code: "unknown", "nothing else can be set"))))
      }
      keeping.set(metric, number, for: id)
      askTime(&effects)
    case .perform(let id, .run): effects.append(.complete(id, .failure(.refused(code: "unknown", "it can do no such thing"))))
    case .cancelled(let id): keeping.cancel(id)
    case .stored(HealthKeeping.key, let failure):
      let (by, result) = keeping.stored(failure)
      keeping.advance(&effects)
      review(at: now, &effects)
      for id in by { effects.append(.complete(id, result)) }
    case .rows(let id, let answer):
      gadgetbridge?.take(id, answer, clock, at: now, &effects)
      review(at: now, &effects)
    case .stopping:
      // What was set is on its way; that it has arrived nobody waits for any more.
      keeping.stamp(clock, at: now)
      keeping.advance(&effects)
      for id in keeping.dismiss() { effects.append(.complete(id, .failure(.notConnected("the device is being closed")))) }
      effects.append(.stopped)
    case .wake, .linkChanged, .received, .sent, .observed, .response, .stored, .leaseBegan, .leaseEnded: break
    }
    if case .new = state { return }
    if let end = heartRateEnds, now >= end { review(at: now, &effects) }
    if let due = timeIsDue, now >= due { askTime(&effects) }
  }

  private mutating func askTime(_ effects: inout Effects) {
    guard case .knowing = state else { return }
    state = .asking
    effects.append(.tellTime)
  }

  private mutating func timeWasTold(at now: Instant, _ effects: inout Effects) {
    (state, lastTold) = (.knowing, now)
    keeping.stamp(clock, at: now)
    keeping.advance(&effects)
    gadgetbridge?.look(clock, at: now, &effects)
    review(at: now, &effects)
  }
}
