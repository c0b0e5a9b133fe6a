// Computes periods from recorded values, when the service starts and for Recut.

import CLinux
import HistoryStore
import Observations
import Protocols
import SQLite
import SampleBlocks
import ServiceRuntime
import Trips

/// The blocks of a device, which the thread that reads ahead decodes.
private final class ChunkSource {
  struct Item: Sendable {
    /// The columns and their end in µs since the Unix epoch; nil if no readable block follows.
    var chunk: (columns: SampleColumns, end: Int64)?
    /// The blocks before it that could not be read, and their times.
    var damage: [String]
    var damagedRanges: [ClosedRange<Int64>]
  }

  private var chunks: ChunkIterator
  private var reported = 0
  private var hasEnded = false

  init(_ chunks: ChunkIterator) { self.chunks = chunks }

  /// The next block, or why there is none; nil at the end.
  func next(_ signals: [Int: Signal]) -> Result<Item, StoreError>? {
    guard !hasEnded else { return nil }
    do throws(StoreError) {
      let chunk = try chunks.next()
      defer { reported = chunks.damage.count }
      let (damage, ranges) = (Array(chunks.damage.dropFirst(reported)), Array(chunks.damagedRanges.dropFirst(reported)))
      guard let chunk else {
        hasEnded = true
        return damage.isEmpty ? nil : .success(Item(chunk: nil, damage: damage, damagedRanges: ranges))
      }
      let item = (SampleColumns(chunk, signals), chunk.end &+ chunk.boot.offset)
      return .success(Item(chunk: item, damage: damage, damagedRanges: ranges))
    } catch {
      hasEnded = true
      return .failure(error)
    }
  }
}

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
    // A thread reads and decodes the next blocks while this one computes.
    let source = ChunkSource(
      try reader.chunks(of: device, in: range) { [signals] (block) throws(BlockError) in try SampleColumns.read(block, signals) })
    let chunks = ReadAhead(capacity: 3, name: "replay blocks") { [signals] in source.next(signals) }
    defer { chunks.finish() }
    var columns = ColumnReader()
    while let item = chunks.next() {
      let item = try item.get()
      damage += item.damage
      damagedRanges += item.damagedRanges
      guard let chunk = item.chunk else { break }
      columns.read(chunk.columns, &detector, in: range) { Self.apply($0, &periods) }
      // Its series are covered until then.
      end = chunk.end
      progress(chunk.end)
    }
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
