// Rollups: aggregates of each numeric series per minute and per hour, in the time of the boot, so that a correction of the clock does not
// change them. A row contains the aggregates of a day (minutes) or of 64 days (hours), as a block with one column for each quantity.

import Protocols
import SQLite
import SampleBlocks

enum RollupResolution: Int, CaseIterable {
  case minute = 60
  case hour = 3600

  /// The width of an interval in microseconds.
  var width: Int64 { Int64(rawValue) * 1_000_000 }
  /// The width of a row in microseconds.
  var rowWidth: Int64 { self == .minute ? 86_400_000_000 : 64 * 86_400_000_000 }

  /// The start of the row that contains this interval; at the earliest, that of the first whole row.
  func rowStart(of index: Int) -> Int64 {
    let start = Int64(index) * width
    let remainder = start % rowWidth
    return start.subtractingClamped(remainder < 0 ? remainder + rowWidth : remainder)
  }
}

enum RollupCoding {
  private enum Quantity: Int, CaseIterable {
    case minimum, maximum, mean, last, samples, covered
  }

  static func encode(_ intervals: [Int: Aggregate], _ resolution: RollupResolution) throws(StoreError) -> [UInt8] {
    var builder = BlockBuilder()
    let indexes = intervals.keys.sorted()
    do throws(BlockError) {
      for index in indexes {
        guard let aggregate = intervals[index] else { continue }
        let time = Int64(index) * resolution.width
        let numbers: [(Quantity, Value)] = [
          (.minimum, .float(aggregate.minimum)), (.maximum, .float(aggregate.maximum)), (.mean, .float(rounded(aggregate))),
          (.last, .float(aggregate.last)), (.samples, .int(aggregate.samples)), (.covered, .int(Int((aggregate.covered + 500) / 1000))),
        ]
        for (quantity, value) in numbers { try builder.append(.value(value), series: quantity.rawValue, at: time) }
      }
    } catch {
      throw StoreError(.failed, "cannot encode rollups: \(error)")
    }
    let start = Int64(indexes.first ?? 0) * resolution.width
    return builder.build(from: start, to: start, layout: .whole, effort: .fast)
  }

  /// The mean, rounded to at most a thousandth of the range of values: more digits would be noise, and take up most of the space.
  private static func rounded(_ aggregate: Aggregate) -> Double {
    let range = aggregate.maximum - aggregate.minimum
    guard range > 0, range.isFinite else { return aggregate.mean }
    var scale = 1000.0
    var step = range
    while step > 10, scale > 1 { (step, scale) = (step / 10, scale / 10) }
    while step < 1, scale < 1e9 { (step, scale) = (step * 10, scale * 10) }
    let mean = (aggregate.mean * scale).rounded() / scale
    return min(max(mean, aggregate.minimum), aggregate.maximum)
  }

  static func decode(_ bytes: [UInt8], _ resolution: RollupResolution) throws(BlockError) -> [Int: Aggregate] {
    let columns = try Block(bytes).columns()
    guard columns.map(\.series) == Quantity.allCases.map(\.rawValue), Set(columns.map(\.count)).count == 1 else {
      if columns.isEmpty { return [:] }
      throw BlockError("rollup", "wrong columns")
    }
    var intervals: [Int: Aggregate] = [:]
    for index in 0..<columns[0].count {
      func number(_ quantity: Quantity) -> Double { columns[quantity.rawValue].number(index) ?? 0 }
      // Clamp, so that damaged values cannot cause an overflow trap.
      let samples = Int(min(max(number(.samples), 0), 1e15))
      let covered = Int64(min(max(number(.covered), 0), 1e12)) * 1000
      intervals[Int(columns[0].times[index] / resolution.width)] = Aggregate(
        minimum: number(.minimum), maximum: number(.maximum), mean: number(.mean), last: number(.last), samples: samples, covered: covered)
    }
    return intervals
  }
}

extension Database {
  /// Adds later aggregates of a series to the rollups.
  func addRollups(_ aggregates: Aggregates, _ resolution: RollupResolution, boot: Int, series: Int) throws(StoreError) {
    let rows = Dictionary(grouping: aggregates.intervals.keys) { resolution.rowStart(of: $0) }
    for (start, indexes) in rows {
      var merged = Aggregates(width: resolution.width)
      for (index, aggregate) in try rollups(resolution, boot: boot, series: series, row: start) { merged.add(aggregate, at: index) }
      for index in indexes { if let aggregate = aggregates.intervals[index] { merged.add(aggregate, at: index) } }
      try setRollups(merged.intervals, resolution, boot: boot, series: series, row: start)
    }
  }

  /// Returns the aggregates of one row. A damaged row counts as empty, so that it is replaced.
  private func rollups(_ resolution: RollupResolution, boot: Int, series: Int, row: Int64) throws(StoreError) -> [Int: Aggregate] {
    let found = try rows(
      "SELECT data FROM rollup WHERE resolution = ? AND boot = ? AND start = ? AND series = ?",
      [.int(resolution.rawValue), .int(boot), .int(row), .int(series)]
    ) { (row) throws(StoreError) in row.blob(0) }
    return found.first.flatMap { try? RollupCoding.decode($0, resolution) } ?? [:]
  }

  func setRollups(
    _ intervals: [Int: Aggregate], _ resolution: RollupResolution, boot: Int, series: Int, row: Int64
  ) throws(StoreError) {
    let key: [SQLValue] = [.int(resolution.rawValue), .int(boot), .int(row), .int(series)]
    if intervals.isEmpty {
      try run("DELETE FROM rollup WHERE resolution = ? AND boot = ? AND start = ? AND series = ?", key)
    } else {
      try run(
        "REPLACE INTO rollup (resolution, boot, start, series, data) VALUES (?, ?, ?, ?, ?)",
        key + [.blob(try RollupCoding.encode(intervals, resolution))])
    }
  }

  /// Returns the rollup rows of a series that overlap `start` to `end` (µs of the boot).
  func rollups(
    _ resolution: RollupResolution, boot: Int, series: Int, from start: Int64, to end: Int64
  ) throws(StoreError) -> [(row: Int64, bytes: [UInt8])] {
    // The primary key orders by start before series, so step through the row starts.
    let firstStart = try number(
      "SELECT min(start) FROM rollup WHERE resolution = ? AND boot = ?", [.int(resolution.rawValue), .int(boot)])
    let lastStart = try number(
      "SELECT max(start) FROM rollup WHERE resolution = ? AND boot = ?", [.int(resolution.rawValue), .int(boot)])
    var result: [(row: Int64, bytes: [UInt8])] = []
    var row = max(firstStart, resolution.rowStart(of: Int(clamping: start / resolution.width)))
    while row <= min(lastStart, end) {
      for bytes in try rows(
        "SELECT data FROM rollup WHERE resolution = ? AND boot = ? AND start = ? AND series = ?",
        [.int(resolution.rawValue), .int(boot), .int(row), .int(series)],
        { (row) throws(StoreError) in row.blob(0) })
      { result.append((row, bytes)) }
      row += resolution.rowWidth
    }
    return result
  }
}
