// Writes detected periods into the store: on the thread of the store, which alone knows their numbers.

import HistoryStore
import Protocols
import Varlink

/// The number in the store of each period of one detector. Used on the store's thread only.
final class PeriodNumbers: @unchecked Sendable {
  fileprivate var ids: [Int: Int] = [:]
}

/// A detected period on its way to the store.
struct PeriodRecord: Sendable {
  /// The number that the detector uses.
  var detected: Int
  var details: HistoryContract.PeriodMethod.Result
}

/// What turns wall-clock times of a detector into times of boots: the boot that runs, and its offset when the detector was created.
struct LiveAxis: Equatable, Sendable {
  var boot: Int
  var offset: Int64

  func wall(_ time: Int64) -> Int64 { time &+ offset }
}

extension HistoryStore {
  /// Stores a new or changed period.
  func save(_ record: PeriodRecord, _ numbers: PeriodNumbers, _ axis: LiveAxis) throws(HistoryError) {
    guard var row = try row(record, axis) else { return }
    row.id = numbers.ids[record.detected] ?? 0
    numbers.ids[record.detected] = try store(row)
  }

  /// Removes a period that does not exist after all.
  func remove(_ detected: Int, _ numbers: PeriodNumbers) throws(HistoryError) {
    if let id = numbers.ids.removeValue(forKey: detected) { try removePeriod(id) }
  }

  /// Replaces the periods of a device between two wall-clock times (µs) by these. Returns how many there are.
  @discardableResult
  func replace(
    _ device: String, in range: ClosedRange<Int64>, with records: [PeriodRecord], _ numbers: PeriodNumbers, _ axis: LiveAxis
  ) throws(HistoryError) -> Int {
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

  private func row(_ record: PeriodRecord, _ axis: LiveAxis) throws(HistoryError) -> StoredPeriod? {
    let period = record.details.period
    guard let kind = StoredPeriod.Kind(rawValue: period.kind) else { return nil }
    return PeriodMapping.row(
      record.details, kind: kind, start: try bootTime(Int64(period.start), axis), end: try bootTime(Int64(period.end), axis))
  }

  /// The boot in which a wall-clock time was, and the time in it.
  private func bootTime(_ wall: Int64, _ axis: LiveAxis) throws(HistoryError) -> BootTime {
    if wall >= axis.offset { return BootTime(boot: axis.boot, time: wall - axis.offset) }
    // Between two boots the earlier one is as good as the later one.
    let during = try reader.boots(from: wall, to: wall).first
    let boot = if let during { during } else { try reader.boots(to: wall).last }
    return boot.map { BootTime(boot: $0.id, time: wall - $0.offset) } ?? BootTime(boot: axis.boot, time: wall - axis.offset)
  }
}
