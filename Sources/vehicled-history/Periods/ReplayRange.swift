// Determines the time from which recorded values must be read so that no period is cut in two, and the time zones of recomputed periods.

import HistoryStore
import SQLite

struct ReplayRange: Sendable {
  /// µs since the Unix epoch.
  let start: Int64
  private let zones: [(span: ClosedRange<Int64>, zone: String)]
  private let zone = LocalZone.current()

  /// Creates the range that contains the periods that can still change: the open ones, those of this boot, whose clock may have been
  /// corrected, and the last one before this boot. With `from`, it also contains the periods that ended after that time.
  init(_ reader: HistoryReader, device: String, from requestedStart: Int64?, boot: Int) throws(StoreError) {
    let axis = try TimeAxis(reader)
    let isRecorded = try reader.devices().contains(device)
    let periods = isRecorded ? try reader.periods(of: device, limit: requestedStart == nil ? 1000 : .max) : []
    var starts = periods.filter { period in
      if period.isFrozen { return false }
      if period.isOpen || period.start.boot == boot { return true }
      return requestedStart.map { axis.wall(period.end) > $0 } ?? false
    }.map { axis.wall($0.start) }
    if let last = periods.first(where: { $0.start.boot != boot && !$0.isFrozen }) { starts.append(axis.wall(last.start)) }
    if periods.isEmpty { starts.append(.min) }
    if let requestedStart { starts.append(requestedStart) }
    // Periods before the end of a frozen period are not recomputed.
    let frozen = periods.filter(\.isFrozen).map { axis.wall($0.end) }.max() ?? .min
    start = max(starts.min() ?? frozen, frozen)
    zones = periods.map { period in
      let start = axis.wall(period.start)
      return (start...max(start, axis.wall(period.end)), period.zone)
    }
  }

  /// The time zone of the stored period that contains this time, or the current one.
  func zone(at time: Int64) -> String { zones.first { $0.span.contains(time) }?.zone ?? zone }

  /// The range extended to whole periods, or nil if it reaches periods that a live tracker may still change.
  static func extended(
    _ reader: HistoryReader, device: String, _ range: ClosedRange<Int64>, isLive: Bool
  ) throws(StoreError) -> ClosedRange<Int64>? {
    let axis = try TimeAxis(reader)
    let overlapping = try reader.periods(of: device, in: range)
    if isLive {
      guard let newest = try reader.periods(of: device, limit: 1).first else { return nil }
      let last = newest.isOpen ? axis.wall(newest.start) : axis.wall(newest.end)
      guard range.upperBound < last, !overlapping.contains(where: \.isOpen) else { return nil }
    }
    let start = overlapping.map { axis.wall($0.start) }.min() ?? range.lowerBound
    let end = overlapping.map { axis.wall($0.end) }.max() ?? range.upperBound
    return min(start, range.lowerBound)...max(end, range.upperBound)
  }
}
