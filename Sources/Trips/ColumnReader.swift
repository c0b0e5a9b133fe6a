// Adds recorded samples to a detector in chronological order. Reading a year of them takes seconds, so the loop works on plain numbers.

/// Adds columns that follow each other to a detector, with the same result as `PeriodDetector.add` for each sample.
public struct ColumnReader: Sendable {
  /// The time of the latest sample: columns repeat the values that are valid at their start.
  private var position = Int64.min

  public init() {}

  /// Adds the samples in a range of wall-clock time (µs) to the detector. `apply` receives its changes.
  public mutating func read(
    _ columns: SampleColumns, _ detector: inout PeriodDetector, in range: ClosedRange<Int64>, _ apply: ([Change]) -> Void
  ) {
    let (offset, start) = (columns.offset, columns.start)
    var position = position
    var all = columns.cursors()
    let power = Self.power(all)
    all.withUnsafeMutableBufferPointer { buffer in
      let cursors = buffer
      // The cursors except the power, ordered by their next sample.
      var others = TimeQueue(cursors.indices.filter { $0 != power.first && $0 != power.second }.map { ($0, cursors[$0].time) })
      while true {
        let next = power.first < 0 ? Int64.max : min(cursors[power.first].time, cursors[power.second].time)
        let time = min(next, others.time)
        guard time < .max else { return }
        // After a gap, values that are valid at the start may be older than it.
        let wall = max(time, start) &+ offset
        if next < others.time, time >= start, wall > position, wall >= range.lowerBound {
          let limit = min(others.time, range.upperBound &- offset)
          if let added = detector.addPower(&cursors[power.first], &cursors[power.second], offset: offset, before: limit) {
            position = added.time
            if !added.changes.isEmpty { apply(added.changes) }
            continue
          }
        }
        let isNew = (wall > position || !columns.continues) && range.contains(wall)
        while true {
          var index = others.time == time ? others.first : .max
          if power.first >= 0, cursors[power.second].time == time { index = min(index, power.second) }
          if power.first >= 0, cursors[power.first].time == time { index = min(index, power.first) }
          guard index < .max else { break }
          if isNew {
            let changes = detector.add(cursors[index].sample(at: wall))
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
