// The periods of one device as they happen. After a start it reads the values since the beginning of the open periods again; live values
// wait meanwhile. Times are those of the wall clock, by the offset that the boot has when the tracker resumes.

import HistoryStore
import Protocols
import Trips

final class PeriodTracker {
  /// How often an open period is stored, in µs: readers get its figures from here, and a restart computes them again.
  private static let tripInterval: Int64 = 300_000_000
  private static let parkingInterval: Int64 = 3_600_000_000
  /// Values arrive later than the clock, at most by this time, in µs.
  private static let delay: Int64 = 2_000_000

  /// What to store, in order.
  enum Action {
    case save(DetectedPeriod)
    case remove(Int)
  }

  private struct Stored {
    var time: Int64
    var start: Int64
    var marks: DetectedPeriod.Marks
    var isOpen: Bool
  }

  private enum Mode {
    /// The values that arrived since the tracker resumed.
    case resuming([TripSample])
    case live(PeriodDetector)
  }

  private var mode: Mode = .resuming([])
  private var stored: [Int: Stored] = [:]
  private var now = Int64.min
  /// The signal of each property, for its latest type and unit.
  private var signals: [String: (type: ValueType, unit: String?, signal: Signal?)] = [:]

  var isLive: Bool { if case .live = mode { true } else { false } }

  /// Live values wait from now on.
  func resume() {
    if case .live = mode { mode = .resuming([]) }
    stored = [:]
    now = .min
  }

  /// Goes on with a detector that has read the recorded values, then with those that waited.
  func go(_ detector: PeriodDetector, periods: [DetectedPeriod], at time: Int64) -> [Action] {
    guard case .resuming(let waiting) = mode else { return [] }
    for period in periods {
      stored[period.id] = Stored(time: time, start: period.start, marks: period.marks, isOpen: period.end == nil)
    }
    now = time
    mode = .live(detector)
    return waiting.flatMap { add($0) }
  }

  /// Handles an observation; `time` is that of the wall clock.
  func observe(_ observation: Observation, at time: Int64) -> [Action] {
    guard let signal = signal(of: observation) else { return [] }
    return add(signal.sample(observation.content, at: time))
  }

  private func signal(of observation: Observation) -> Signal? {
    if observation.property == Observation.state { return .state }
    let known = signals[observation.property]
    guard case .value(let value) = observation.content else { return known?.signal }
    if let known, known.type == value.type, known.unit == observation.unit { return known.signal }
    let signal = Signal(property: observation.property, type: value.type, unit: observation.unit)
    signals[observation.property] = (value.type, observation.unit, signal)
    return signal
  }

  private func add(_ sample: TripSample) -> [Action] {
    switch mode {
    case .resuming(var waiting):
      mode = .resuming([])
      waiting.append(sample)
      mode = .resuming(waiting)
      return []
    case .live(var detector):
      mode = .resuming([])
      // A value that arrives late is no step of the clock, which resumes the tracker.
      var sample = sample
      sample.time = max(sample.time, now)
      now = sample.time
      let changes = detector.add(sample)
      mode = .live(detector)
      return changes.isEmpty ? [] : actions(changes)
    }
  }

  /// Handles the time.
  func advance(to time: Int64) -> [Action] {
    let time = time - Self.delay
    guard case .live(var detector) = mode, time > now else { return [] }
    mode = .resuming([])
    now = time
    let changes = detector.advance(to: time)
    mode = .live(detector)
    return actions(changes)
  }

  /// The open periods as of now.
  var openPeriods: [DetectedPeriod] { if case .live(let detector) = mode { detector.openPeriods } else { [] } }
  /// The time to which the open periods are known.
  var latest: Int64 { now }

  private func actions(_ changes: [Change]) -> [Action] {
    changes.compactMap { change in
      switch change {
      case .removed(let id):
        stored[id] = nil
        return .remove(id)
      case .stored(let period):
        let isOpen = period.end == nil
        if isOpen, let last = stored[period.id], last.isOpen, last.start == period.start, last.marks == period.marks {
          let interval = period.kind == .parking ? Self.parkingInterval : Self.tripInterval
          if now - last.time < interval { return nil }
        }
        stored[period.id] = Stored(time: now, start: period.start, marks: period.marks, isOpen: isOpen)
        return .save(period)
      }
    }
  }
}
