// Merges the samples of a chunk that periods depend on, in chronological order. Reading a year of them takes seconds. Pure.

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
    let offset = chunk.boot.offset
    while true {
      var time = Int64.max
      for index in columns.indices where next[index] < columns[index].column.count {
        time = min(time, columns[index].column.times[next[index]])
      }
      guard time < .max else { return }
      // After a gap, values that are valid at the start of a chunk may be older than the chunk.
      let wall = chunk.continues ? time &+ offset : max(time, chunk.start) &+ offset
      let isNew = wall > position || !chunk.continues
      for index in columns.indices where next[index] < columns[index].column.count {
        let (column, signal) = columns[index]
        guard column.times[next[index]] == time else { continue }
        if isNew { body(signal.sample(column.content(next[index]), at: wall)) }
        next[index] += 1
      }
      position = max(position, wall)
    }
  }
}
