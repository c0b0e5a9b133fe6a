// Plots of a numeric series in equal intervals. Long ranges are read from the rollups; only blocks that are not merged yet are read as
// samples.

import Protocols
import SQLite
import SampleBlocks

/// A plot of one series. A point is nil if its interval has no values.
public struct Plot: Sendable {
  /// The wall-clock time at which the plot starts, in microseconds.
  public let start: Int64
  /// The width of an interval, in microseconds.
  public let width: Int64
  public let points: [Aggregate?]
  /// The blocks that could not be read and were skipped, with the reason.
  public let damage: [String]
}

extension HistoryReader {
  /// Returns a plot of a numeric series between two wall-clock times (µs), with 1 to 100 000 points.
  public func plot(_ series: Series, in range: ClosedRange<Int64>, points: Int) throws(StoreError) -> Plot {
    let count = Int64(min(max(points, 1), 100_000))
    let (duration, overflows) = range.upperBound.subtractingReportingOverflow(range.lowerBound)
    guard !overflows, duration < Int64.max / 2 else {
      throw StoreError(.invalid, "the range of the plot is too long; choose a shorter one")
    }
    let width = max(1, (duration + count) / count)
    var aggregates = Aggregates(width: width, origin: range.lowerBound)
    var damage: [String] = []
    let resolution = RollupResolution.allCases.last { width >= 2 * $0.width }
    let device = try self.series(series.id).device
    for boot in try boots(from: range.lowerBound, to: range.upperBound) {
      let start = range.lowerBound.subtractingClamped(boot.offset)
      let end = range.upperBound.subtractingClamped(boot.offset)
      var rawStart = start
      if let resolution {
        rawStart = max(start, try addRollups(resolution, series.id, device, boot, start...max(start, end), &aggregates, &damage) + 1)
      }
      guard rawStart <= end, resolution == nil || boot.hasRecent else { continue }
      try addSamples(series, device, boot, rawStart...end, &aggregates, &damage)
    }
    let intervals = aggregates.intervals
    return Plot(start: range.lowerBound, width: width, points: (0..<Int(count)).map { intervals[$0] }, damage: damage)
  }

  /// Adds the rollups of a boot. Returns the time up to which they cover the boot.
  private func addRollups(
    _ resolution: RollupResolution, _ series: Int, _ device: Int, _ boot: Boot, _ range: ClosedRange<Int64>,
    _ aggregates: inout Aggregates, _ damage: inout [String]
  ) throws(StoreError) -> Int64 {
    for row in try database.rollups(resolution, boot: boot.id, series: series, from: range.lowerBound, to: range.upperBound) {
      do throws(BlockError) {
        for (index, aggregate) in try RollupCoding.decode(row.bytes, resolution).sorted(by: { $0.key < $1.key }) {
          let middle = Int64(index) * resolution.width + resolution.width / 2
          if range.contains(middle) { aggregates.add(aggregate, at: aggregates.index(of: middle + boot.offset)) }
        }
      } catch {
        damage.append("rollup of series \(series) in boot \(boot.id): \(error)")
      }
    }
    return try database.number(
      "SELECT ifnull((SELECT max(\"end\") FROM block WHERE device = ?1 AND boot = ?2), (SELECT ifnull(last, ?3) FROM boot WHERE id = ?2))",
      [.int(device), .int(boot.id), .int(range.lowerBound)])
  }

  private func addSamples(
    _ series: Series, _ device: Int, _ boot: Boot, _ range: ClosedRange<Int64>, _ aggregates: inout Aggregates, _ damage: inout [String]
  ) throws(StoreError) {
    let references = try references(device: device, boot: boot, from: range.lowerBound, to: range.upperBound)
    var segments = SegmentReader()
    var isInterrupted = true
    for reference in references {
      guard let block = try block(reference) else { continue }
      do throws(BlockError) {
        let column = try block.get().column(series.id)
        segments.read(column, from: reference.start, to: reference.end, continues: reference.continues && !isInterrupted) { segment in
          var segment = segment
          segment.samples = range.contains(segment.start) ? segment.samples : 0
          segment.start = max(segment.start, range.lowerBound)
          segment.end = min(segment.end, range.upperBound)
          guard segment.start <= segment.end, segment.samples > 0 || segment.start < segment.end else { return }
          segment.start += boot.offset
          segment.end += boot.offset
          aggregates.add(segment)
        }
        isInterrupted = false
      } catch {
        damage.append(reference.describe(series.key.device, boot, error))
        isInterrupted = true
      }
    }
  }
}
