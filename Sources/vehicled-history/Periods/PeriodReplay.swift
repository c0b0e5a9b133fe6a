// Computes periods from recorded values, when the service starts and for Recut.

import CLinux
import HistoryStore
import Observations
import Protocols
import SQLite
import SampleBlocks
import Trips

/// A replay of recorded values. Its results are the periods, and a detector that can continue with live values.
struct PeriodReplay: Sendable {
  private(set) var detector: PeriodDetector
  /// The periods, by the IDs of the detector.
  private(set) var periods: [Int: DetectedPeriod] = [:]
  /// The time up to which values were recorded.
  private(set) var end: Int64?
  /// The blocks that could not be read.
  private(set) var damage: [String] = []
  /// Their times (µs).
  private(set) var damagedRanges: [ClosedRange<Int64>] = []

  /// Starts without values.
  init(rules: PeriodRules) { detector = PeriodDetector(rules: rules) }

  /// Reads the values of a device in a range of wall-clock time (µs). `progress` receives the time reached so far.
  mutating func read(
    _ reader: HistoryReader, device: String, in range: ClosedRange<Int64>, progress: (Int64) -> Void = { _ in }
  ) throws(StoreError) {
    var signals: [Int: Signal] = [:]
    for series in try reader.series(of: device) { signals[series.id] = Self.signal(series.key) }
    guard !signals.isEmpty else { return }
    var chunks = try reader.chunks(of: device, in: range) { [signals] (block) throws(BlockError) in
      try SampleColumns.read(block, signals)
    }
    var columns = ColumnReader()
    while let chunk = try chunks.next() {
      columns.read(SampleColumns(chunk, signals), &detector, in: range) { Self.apply($0, &periods) }
      // Its series are covered until then.
      let chunkEnd = chunk.end &+ chunk.boot.offset
      end = chunkEnd
      progress(chunkEnd)
    }
    damage += chunks.damage
    damagedRanges += chunks.damagedRanges
    clinux_return_memory()
  }

  private static func apply(_ changes: [Change], _ periods: inout [Int: DetectedPeriod]) {
    for change in changes {
      switch change {
      case .stored(let period): periods[period.id] = period
      case .removed(let id): periods[id] = nil
      }
    }
  }

  /// Returns all periods as of a time, ordered by start.
  mutating func finish(at time: Int64?) -> [DetectedPeriod] {
    if let time { Self.apply(detector.advance(to: time), &periods) }
    Self.apply(detector.finish(), &periods)
    return periods.values.sorted { ($0.start, $0.id) < ($1.start, $1.id) }
  }

  static func signal(_ key: SeriesKey) -> Signal? {
    if key.property == Observation.state { return key.type == .string ? .state : nil }
    return Signal(property: key.property, type: key.type, unit: key.unit)
  }
}
