// Merges the samples of a chunk that periods depend on, in chronological order. Reading a year of them takes seconds, so the loop works on
// plain numbers in two arrays. No I/O.

import HistoryStore
import Protocols
import SampleBlocks
import Trips

struct SampleMerge {
  private let signals: [Int: Signal]
  /// The time of the latest sample: a merged block repeats earlier values.
  private var position = Int64.min
  /// The times and values of all columns of a chunk, one column after the other; NaN for an absent value. Reused for every chunk.
  private var times: [Int64] = []
  private var values: [Double] = []
  private var sources: [Source] = []

  /// The column of a signal: the indexes of its remaining samples, and the time of the next one.
  private struct Source {
    var role: Role
    var next: Int
    var end: Int
    var time: Int64
  }

  /// Creates a merge of these series.
  init(_ signals: [Int: Signal]) { self.signals = signals }

  /// Calls `body` for each sample of the chunk, with its wall-clock time.
  mutating func read(_ chunk: Chunk, _ body: (TripSample) -> Void) {
    load(chunk)
    let (offset, start) = (chunk.boot.offset, chunk.continues ? Int64.min : chunk.start)
    var position = position
    times.withUnsafeBufferPointer { times in
      values.withUnsafeBufferPointer { values in
        sources.withUnsafeMutableBufferPointer { sources in
          while true {
            var time = Int64.max
            for source in sources { time = min(time, source.time) }
            guard time < .max else { return }
            // After a gap, values that are valid at the start of a chunk may be older than the chunk.
            let wall = max(time, start) &+ offset
            let isNew = wall > position || !chunk.continues
            for index in sources.indices where sources[index].time == time {
              let next = sources[index].next
              if isNew {
                let value = values[next]
                body(TripSample(wall, sources[index].role, value.isNaN ? nil : value))
              }
              sources[index].next = next + 1
              sources[index].time = next + 1 < sources[index].end ? times[next + 1] : .max
            }
            position = max(position, wall)
          }
        }
      }
    }
    self.position = position
  }

  private mutating func load(_ chunk: Chunk) {
    times.removeAll(keepingCapacity: true)
    values.removeAll(keepingCapacity: true)
    sources.removeAll(keepingCapacity: true)
    for column in chunk.columns {
      guard let signal = signals[column.series], let first = column.times.first else { continue }
      sources.append(Source(role: signal.role, next: times.count, end: times.count + column.count, time: first))
      times.append(contentsOf: column.times)
      if let numbers = column.numbers {
        for number in numbers { values.append(signal.value(number)) }
      } else {
        for index in 0..<column.count { values.append(signal.sample(column.content(index), at: 0).value ?? .nan) }
      }
    }
  }
}
