// Merges the samples of a chunk that periods depend on, in chronological order. Reading a year of them takes seconds. No I/O.

import HistoryStore
import Protocols
import SampleBlocks
import Trips

struct SampleMerge {
  private let signals: [Int: Signal]
  /// The time of the latest sample: a merged block repeats earlier values.
  private var position = Int64.min

  /// Creates a merge of these series.
  init(_ signals: [Int: Signal]) { self.signals = signals }

  /// Calls `body` for each sample of the chunk, with its wall-clock time.
  mutating func read(_ chunk: Chunk, _ body: (TripSample) -> Void) {
    let columns = chunk.columns.compactMap { column in signals[column.series].map { (column: column, signal: $0) } }
    var next = [Int](repeating: 0, count: columns.count)
    // The time of the next sample of each column, stored separately from the columns, because it is compared at every step.
    var times = columns.map { $0.column.times.first ?? .max }
    let offset = chunk.boot.offset
    while true {
      var time = Int64.max
      for other in times { time = min(time, other) }
      guard time < .max else { return }
      // After a gap, values that are valid at the start of a chunk may be older than the chunk.
      let wall = chunk.continues ? time &+ offset : max(time, chunk.start) &+ offset
      let isNew = wall > position || !chunk.continues
      for index in times.indices where times[index] == time {
        let column = columns[index].column
        if isNew { body(Self.sample(column, next[index], columns[index].signal, at: wall)) }
        next[index] += 1
        times[index] = next[index] < column.count ? column.times[next[index]] : .max
      }
      position = max(position, wall)
    }
  }

  @inline(__always)
  private static func sample(_ column: Column, _ index: Int, _ signal: Signal, at time: Int64) -> TripSample {
    // Most values are numbers, which need not be boxed.
    guard let number = column.number(index) else { return signal.sample(column.content(index), at: time) }
    return signal.sample(number, at: time)
  }
}
