// Tracks the periods of one device live. After a start, PeriodReplay reads the values since the beginning of the open periods again; live
// values are buffered in the meantime. Times are wall-clock times, computed with the offset of the boot at the beginning of the replay.

import HistoryStore
import Observations
import Protocols
import Trips

final class PeriodTracker {
  /// How often an open period is stored, in µs. A long interval is enough: readers get its figures from the tracker, and a restart
  /// recomputes them.
  private static let tripInterval: Int64 = 300_000_000
  private static let parkingInterval: Int64 = 3_600_000_000
  /// The maximum delay with which values arrive, in µs.
  private static let delay: Int64 = 2_000_000

  /// A change to store. Changes must be stored in order.
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
    /// Recorded values are being read. These are the live values since then.
    case replaying([TripSample])
    case live(PeriodDetector)
  }

  private var mode: Mode = .replaying([])
  private var stored: [Int: Stored] = [:]
  private var now = Int64.min
  /// The signal of each property, for its latest type and unit.
  private var signals: [String: (type: ValueType, unit: String?, signal: Signal?)] = [:]

  var isLive: Bool { if case .live = mode { true } else { false } }

  /// Buffers live values from now on, while recorded values are read.
  func beginReplay() {
    if case .live = mode { mode = .replaying([]) }
    stored = [:]
    now = .min
  }

  /// Continues with a detector that has read the recorded values, and passes it the buffered ones.
  func goLive(with detector: PeriodDetector, periods: [DetectedPeriod], at time: Int64) -> [Action] {
    guard case .replaying(let buffered) = mode else { return [] }
    for period in periods {
      stored[period.id] = Stored(time: time, start: period.start, marks: period.marks, isOpen: period.end == nil)
    }
    now = time
    mode = .live(detector)
    return buffered.flatMap { add($0) }
  }

  /// Handles an observation at this wall-clock time.
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
    case .replaying(var buffered):
      mode = .replaying([])
      buffered.append(sample)
      mode = .replaying(buffered)
      return []
    case .live(var detector):
      // Release the copy in `mode`, so that the detector is changed in place.
      mode = .replaying([])
      // A time before `now` is a late value, not a clock step: a step begins a replay.
      var sample = sample
      sample.time = max(sample.time, now)
      now = sample.time
      let changes = detector.add(sample)
      mode = .live(detector)
      return changes.isEmpty ? [] : actions(changes)
    }
  }

  /// Advances to this wall-clock time.
  func advance(to time: Int64) -> [Action] {
    let time = time - Self.delay
    guard case .live(var detector) = mode, time > now else { return [] }
    mode = .replaying([])
    now = time
    let changes = detector.advance(to: time)
    mode = .live(detector)
    return actions(changes)
  }

  /// The open periods as of now.
  var openPeriods: [DetectedPeriod] { if case .live(let detector) = mode { detector.openPeriods } else { [] } }
  /// The time up to which the open periods are known.
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
