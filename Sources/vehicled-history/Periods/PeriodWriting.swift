// Writes detected periods to the store. This runs on the thread of the store, where their numbers are assigned.

import HistoryStore
import Protocols
import SQLite
import Varlink

/// The numbers in the store of the periods of one detector. Use only on the thread of the store.
final class PeriodNumbers: @unchecked Sendable {
  fileprivate var ids: [Int: Int] = [:]
}

/// A detected period to store.
struct PeriodRecord: Sendable {
  /// The ID that the detector uses.
  var detected: Int
  var details: HistoryContract.PeriodMethod.Result
}

/// The current boot, and its offset when the detector was created. They convert wall-clock times of the detector to times of boots.
struct LiveAxis: Equatable, Sendable {
  var boot: Int
  var offset: Int64

  func wall(_ time: Int64) -> Int64 { time &+ offset }
}

extension HistoryStore {
  /// Stores a new or changed period.
  func save(_ record: PeriodRecord, _ numbers: PeriodNumbers, _ axis: LiveAxis) throws(StoreError) {
    guard var row = try row(record, axis) else { return }
    row.id = numbers.ids[record.detected] ?? 0
    numbers.ids[record.detected] = try store(row)
  }

  /// Removes a period that turned out not to exist.
  func remove(_ detected: Int, _ numbers: PeriodNumbers) throws(StoreError) {
    if let id = numbers.ids.removeValue(forKey: detected) { try removePeriod(id) }
  }

  /// Replaces the periods of a device between two wall-clock times (µs) with these. Returns the number of periods in the range afterwards.
  /// Those over `damaged` ranges stay unchanged.
  @discardableResult
  func replace(
    _ device: String, in range: ClosedRange<Int64>, with records: [PeriodRecord], _ numbers: PeriodNumbers, _ axis: LiveAxis,
    damaged: [ClosedRange<Int64>]
  ) throws(StoreError) -> Int {
    try freezePeriods(of: device, in: damaged)
    var rows: [StoredPeriod] = []
    for record in records { if let row = try row(record, axis) { rows.append(row) } }
    let stored = try replacePeriods(of: device, in: range, with: rows)
    for record in records {
      guard let row = try row(record, axis) else { continue }
      let match = stored.first { $0.kind == row.kind && $0.start == row.start && !$0.isFrozen }
      numbers.ids[record.detected] = match?.id
    }
    return stored.count
  }

  private func row(_ record: PeriodRecord, _ axis: LiveAxis) throws(StoreError) -> StoredPeriod? {
    let period = record.details.period
    guard let kind = StoredPeriod.Kind(rawValue: period.kind) else { return nil }
    return PeriodMapping.row(
      record.details, kind: kind, start: try bootTime(Int64(period.start), axis), end: try bootTime(Int64(period.end), axis))
  }

  /// Converts a wall-clock time to a time of the boot that contains it.
  private func bootTime(_ wall: Int64, _ axis: LiveAxis) throws(StoreError) -> BootTime {
    if wall >= axis.offset { return BootTime(boot: axis.boot, time: wall - axis.offset) }
    // A time between two boots is assigned to the earlier one; either would do.
    let during = try reader.boots(from: wall, to: wall).first
    let boot = if let during { during } else { try reader.boots(to: wall).last }
    return boot.map { BootTime(boot: $0.id, time: wall - $0.offset) } ?? BootTime(boot: axis.boot, time: wall - axis.offset)
  }
}
