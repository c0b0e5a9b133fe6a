// Merges the samples that periods depend on in chronological order. Reading a year of them takes seconds, so the loop works on plain
// numbers, and what cannot change anything is left out. No I/O.

import HistoryStore
import Protocols
import SampleBlocks
import Trips

/// The samples of a chunk that periods depend on.
struct MergedChunk: Sendable {
  fileprivate let offset: Int64
  fileprivate let start: Int64
  fileprivate let continues: Bool
  /// The wall-clock time up to which the chunk covers its series.
  let end: Int64
  fileprivate private(set) var cursors: [SampleCursor] = []

  init(_ chunk: Chunk, _ signals: [Int: Signal]) {
    (offset, start, continues) = (chunk.boot.offset, chunk.start, chunk.continues)
    end = chunk.end &+ chunk.boot.offset
    let speed = Self.column(.speed, of: chunk.columns, signals)
    for column in chunk.columns {
      guard let signal = signals[column.series] else { continue }
      let values = Self.values(of: column, signal)
      if let speed, signal.role.replacesSpeed {
        let relevant = Role.timesWithoutSpeed(column.times, speed.numbers, at: speed.times)
        cursors.append(SampleCursor(signal.role, at: relevant.map { column.times[$0] }, relevant.map { values[$0] }))
      } else {
        cursors.append(SampleCursor(signal.role, at: column.times, values))
      }
    }
  }

  private static func values(of column: Column, _ signal: Signal) -> [Double] {
    guard let numbers = column.numbers else { return (0..<column.count).map { signal.sample(column.content($0), at: 0).value ?? .nan } }
    return signal.scale == 1 && !numbers.contains(where: \.isInfinite) ? numbers : numbers.map { signal.value($0) }
  }

  private static func column(_ role: Role, of columns: [Column], _ signals: [Int: Signal]) -> (times: [Int64], numbers: [Double])? {
    guard let column = columns.first(where: { signals[$0.series]?.role == role }) else { return nil }
    return column.numbers.map { (column.times, $0) }
  }

  /// Reads the columns of these signals from a block. The battery power is left out while it follows from current and voltage.
  static func columns(of block: Block, _ signals: [Int: Signal]) throws(BlockError) -> [Column] {
    let columns = try block.columns { signals[$0].map { $0.role != .batteryPower } ?? false }
    guard block.series.contains(where: { signals[$0]?.role == .batteryPower }) else { return columns }
    if let current = column(.batteryCurrent, of: columns, signals), let voltage = column(.batteryVoltage, of: columns, signals),
      Role.currentSuffices(current.numbers, at: current.times, voltagesAt: voltage.times, from: block.start, to: block.end)
    {
      return columns
    }
    return try block.columns { signals[$0] != nil }
  }
}

struct SampleMerge {
  /// The time of the latest sample: a merged block repeats earlier values.
  private var position = Int64.min

  /// Adds the samples of the chunk in a range of wall-clock time to the detector. `apply` receives its changes.
  mutating func read(
    _ chunk: MergedChunk, _ detector: inout PeriodDetector, in range: ClosedRange<Int64>, _ apply: ([Change]) -> Void
  ) {
    let (offset, start) = (chunk.offset, chunk.continues ? Int64.min : chunk.start)
    var position = position
    var all = chunk.cursors
    let power = Self.power(all)
    all.withUnsafeMutableBufferPointer { buffer in
      let cursors = buffer
      // The cursors except the power, ordered by their next sample.
      var others = TimeQueue(cursors.indices.filter { $0 != power.first && $0 != power.second }.map { ($0, cursors[$0].time) })
      while true {
        let next = power.first < 0 ? Int64.max : min(cursors[power.first].time, cursors[power.second].time)
        let time = min(next, others.time)
        guard time < .max else { return }
        // After a gap, values that are valid at the start of a chunk may be older than the chunk.
        let wall = max(time, start) &+ offset
        if next < others.time, time >= start, wall > position, wall >= range.lowerBound {
          let limit = min(others.time, range.upperBound &- offset)
          if let added = detector.addPower(&cursors[power.first], &cursors[power.second], offset: offset, before: limit) {
            position = added.time
            if !added.changes.isEmpty { apply(added.changes) }
            continue
          }
        }
        let isNew = (wall > position || !chunk.continues) && range.contains(wall)
        while true {
          var index = others.time == time ? others.first : .max
          if power.first >= 0, cursors[power.second].time == time { index = min(index, power.second) }
          if power.first >= 0, cursors[power.first].time == time { index = min(index, power.first) }
          guard index < .max else { break }
          if isNew {
            let changes = detector.add(TripSample(wall, cursors[index].role, cursors[index].value))
            if !changes.isEmpty { apply(changes) }
          }
          cursors[index].advance()
          if index != power.first, index != power.second { others.replaceFirst(cursors[index].time) }
        }
        position = max(position, wall)
      }
    }
    self.position = position
  }

  /// The indexes of the current and the voltage in their order; -1 unless there is one of each.
  private static func power(_ cursors: [SampleCursor]) -> (first: Int, second: Int) {
    let found = cursors.indices.filter { cursors[$0].role == .batteryCurrent || cursors[$0].role == .batteryVoltage }
    guard found.count == 2, cursors[found[0]].role != cursors[found[1]].role else { return (-1, -1) }
    return (found[0], found[1])
  }
}

/// Indexes with times, in the order of their times; those with equal times in ascending order.
private struct TimeQueue {
  private var entries: [(index: Int, time: Int64)]
  /// The index and the time of the first entry.
  private(set) var first: Int
  private(set) var time: Int64

  init(_ entries: [(index: Int, time: Int64)]) {
    self.entries = entries.sorted { ($0.time, $0.index) < ($1.time, $1.index) } + [(.max, .max)]
    (first, time) = self.entries[0]
  }

  /// Changes the time of the first entry. Values are polled in turn, so that it usually becomes the last one.
  mutating func replaceFirst(_ time: Int64) {
    let index = first
    entries.withUnsafeMutableBufferPointer { entries in
      var place = entries.count - 2
      while place > 0, (entries[place].time, entries[place].index) > (time, index) { place -= 1 }
      for earlier in 0..<place { entries[earlier] = entries[earlier + 1] }
      entries[place] = (index, time)
    }
    (first, self.time) = entries[0]
  }
}
