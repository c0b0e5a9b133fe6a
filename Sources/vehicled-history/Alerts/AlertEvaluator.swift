// Evaluates the condition of one alert as values arrive. The time is an argument, in µs. No I/O.

import Observations
import Protocols
import Trips

struct AlertEvaluator {
  enum State: String {
    case ok, raised, unknown
  }

  /// How long a clause holds after a change, or after the start or end of a period, in µs.
  static let eventDuration: Int64 = 60_000_000

  private struct CurrentValue {
    var content: Reading.Content
    var unit: String?
  }

  let condition: AlertCondition
  private(set) var state = State.unknown
  /// When the state last changed.
  private(set) var since: Int64
  /// Whether the alert was reported. Reset when the condition no longer holds, so that the alert can be reported again.
  private(set) var isReported: Bool
  /// When the condition began to hold; nil if it does not hold.
  private var trueSince: Int64?
  /// The values of each property, by device.
  private var values: [String: [String: CurrentValue]] = [:]
  /// The latest values of properties, even of those that are absent now: a change counts even if the connection was lost in between.
  private var latest: [String: [String: Value]] = [:]
  /// When the event of each clause last happened; nil for other clauses.
  private var events: [[Int64?]]

  /// Creates an evaluator. An alert that was reported before a restart is not reported again.
  init(_ condition: AlertCondition, isReported: Bool = false, at now: Int64) {
    (self.condition, self.isReported, since) = (condition, isReported, now)
    events = condition.alternatives.map { $0.map { _ in nil } }
  }

  /// Whether the condition depends on this property.
  func uses(_ device: String, _ property: String) -> Bool {
    condition.alternatives.joined().contains { clause in
      switch clause {
      case .compare(let reference, _, _), .matches(let reference, _, _), .change(let reference, _):
        reference.property == property && reference.device ?? device == device
      case .isDown(let name): name == device && property == Observation.state
      case .period: false
      }
    }
  }

  /// Handles a value.
  mutating func observe(_ observation: Observation, at now: Int64) {
    guard uses(observation.device, observation.property) else { return }
    values[observation.property, default: [:]][observation.device] = CurrentValue(content: observation.content, unit: observation.unit)
    guard case .value(let new) = observation.content else { return }
    guard let old = latest[observation.property, default: [:]].updateValue(new, forKey: observation.device) else { return }
    for (row, clauses) in condition.alternatives.enumerated() {
      for (column, clause) in clauses.enumerated() {
        guard case .change(let reference, let change) = clause, reference.property == observation.property,
          reference.device ?? observation.device == observation.device
        else { continue }
        if Self.isChange(change, from: old, to: new) { events[row][column] = now }
      }
    }
  }

  private static func isChange(_ change: AlertCondition.Change, from old: Value, to new: Value) -> Bool {
    switch change {
    case .changed: return old != new
    case .rose, .fell:
      guard let before = old.number, let after = new.number else { return false }
      return change == .rose ? after > before : after < before
    }
  }

  /// Handles the start or the end of a period.
  mutating func periodChanged(of device: String, _ kind: DetectedPeriod.Kind, hasEnded: Bool, at now: Int64) {
    for (row, clauses) in condition.alternatives.enumerated() {
      for (column, clause) in clauses.enumerated()
      where clause == .period(device: nil, kind, hasEnded: hasEnded)
        || clause == .period(device: device, kind, hasEnded: hasEnded)
      {
        events[row][column] = now
      }
    }
  }

  /// Discards the values of a device that is gone or, without a device, all values, because the daemon is disconnected.
  mutating func discardValues(of device: String? = nil) {
    guard let device else { return values = [:] }
    for property in values.keys { values[property]?[device] = nil }
  }

  /// Updates the state. Returns whether it has changed, and whether the alert must be reported.
  mutating func update(at now: Int64) -> (hasChanged: Bool, isRaised: Bool) {
    let truth = truth(at: now)
    let new: State
    switch truth {
    case nil: (new, trueSince) = (.unknown, nil)
    case false?: (new, trueSince, isReported) = (.ok, nil, false)
    case true?:
      let start = trueSince ?? now
      trueSince = start
      new = now - start >= condition.duration ? .raised : .ok
    }
    let hasChanged = new != state
    if hasChanged { (state, since) = (new, now) }
    let isRaised = new == .raised && !isReported
    if isRaised { isReported = true }
    return (hasChanged, isRaised)
  }

  /// When the state may next change without a new value.
  var due: Int64? {
    let held = trueSince.flatMap { state == .raised ? nil : $0 + condition.duration }
    let ends = events.joined().compactMap { $0.map { $0 + Self.eventDuration } }.filter { $0 > since || state == .raised }
    return (ends + [held].compactMap { $0 }).min()
  }

  private func truth(at now: Int64) -> Bool? {
    var result: Bool? = false
    for (row, clauses) in condition.alternatives.enumerated() {
      var all: Bool? = true
      for (column, clause) in clauses.enumerated() {
        switch truth(of: clause, happened: events[row][column], at: now) {
        case false?: all = false
        case nil where all == true: all = nil
        default: break
        }
      }
      if all == true { return true }
      if all == nil { result = nil }
    }
    return result
  }

  private func truth(of clause: AlertCondition.Clause, happened: Int64?, at now: Int64) -> Bool? {
    let isRecent = happened.map { now - $0 < Self.eventDuration } ?? false
    switch clause {
    case .compare(let reference, let comparison, let number):
      return any(reference) { value in
        let found: Double? = if case .bool(let flag) = value { flag ? 1 : 0 } else { value.number }
        return found.map { Self.compare($0, comparison, number) }
      }
    case .matches(let reference, let word, let isNegated): return any(reference) { Self.matches($0, word).map { $0 != isNegated } }
    case .isDown(let device):
      return any(AlertCondition.Reference(device: device, property: Observation.state)) { value in
        if case .string(let word) = value { DeviceState(word) == .down } else { nil }
      }
    case .change(let reference, _): return isRecent ? true : any(reference) { _ in false }
    case .period: return isRecent
    }
  }

  /// Whether the test holds for the property of any device; nil if no device has a value.
  private func any(_ reference: AlertCondition.Reference, _ test: (Value) -> Bool?) -> Bool? {
    var result: Bool?
    for (device, known) in values[reference.property] ?? [:] where reference.device ?? device == device {
      guard case .value(let value) = known.content, let holds = test(value) else { continue }
      result = holds || result == true
    }
    return result
  }

  private static func compare(_ value: Double, _ comparison: AlertCondition.Comparison, _ number: Double) -> Bool {
    switch comparison {
    case .less: value < number
    case .lessOrEqual: value <= number
    case .greater: value > number
    case .greaterOrEqual: value >= number
    case .equal: value == number
    case .notEqual: value != number
    }
  }

  private static func matches(_ value: Value, _ word: String) -> Bool? {
    switch value {
    case .bool(let flag):
      switch word {
      case "on", "true", "yes": flag
      case "off", "false", "no": !flag
      default: nil
      }
    case .string(let text): text == word
    case .list(let texts): texts.contains(word)
    case .int, .float: nil
    }
  }

  /// The condition with the current values of its properties.
  var text: String {
    let shown = condition.alternatives.joined().flatMap { clause -> [String] in
      switch clause {
      case .compare(let reference, _, _), .matches(let reference, _, _), .change(let reference, _): values(of: reference)
      case .isDown(let device): values(of: AlertCondition.Reference(device: device, property: Observation.state))
      case .period: []
      }
    }
    return shown.isEmpty ? condition.text : "\(condition.text) (\(shown.joined(separator: ", ")))"
  }

  private func values(of reference: AlertCondition.Reference) -> [String] {
    (values[reference.property] ?? [:]).sorted { $0.key < $1.key }.filter { reference.device ?? $0.key == $0.key }.map { device, known in
      switch known.content {
      case .value(let value): "\(device).\(reference.property): \(value.text)\(known.unit.map { " \($0)" } ?? "")"
      case .absent(let reason): "\(device).\(reference.property): \(reason)"
      }
    }
  }
}
