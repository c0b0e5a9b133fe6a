// Merges the samples that periods depend on in chronological order. Reading a year of them takes seconds, so the loop works on plain numbers
// in two arrays, and columns that cannot change anything are not read. No I/O.

import HistoryStore
import Protocols
import SampleBlocks
import Trips

/// The samples of a chunk that periods depend on.
struct MergedChunk: Sendable {
  /// The column of a signal: the indexes of its remaining samples, and the time of the next one.
  fileprivate struct Source {
    var role: Role
    var next: Int
    var end: Int
    var time: Int64
  }

  fileprivate let offset: Int64
  fileprivate let start: Int64
  fileprivate let continues: Bool
  /// The wall-clock time up to which the chunk covers its series.
  let end: Int64
  /// The times and values of all columns, one column after the other; NaN for an absent value.
  fileprivate private(set) var times: [Int64] = []
  fileprivate private(set) var values: [Double] = []
  fileprivate private(set) var sources: [Source] = []

  init(_ chunk: Chunk, _ signals: [Int: Signal]) {
    (offset, start, continues) = (chunk.boot.offset, chunk.start, chunk.continues)
    end = chunk.end &+ chunk.boot.offset
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

  /// Reads the columns of these signals from a block. The battery power is left out while it follows from current and voltage.
  static func columns(of block: Block, _ signals: [Int: Signal]) throws(BlockError) -> [Column] {
    let columns = try block.columns { signals[$0].map { $0.role != .batteryPower } ?? false }
    func column(_ role: Role) -> Column? { columns.first { signals[$0.series]?.role == role } }
    if let current = column(.batteryCurrent), let voltage = column(.batteryVoltage), let currents = current.numbers,
      let voltages = voltage.numbers, voltage.times.first ?? .max <= block.start,
      Role.currentAndVoltageSuffice(currents, at: current.times, voltages, from: block.start, to: block.end)
    {
      return columns
    }
    return try block.columns { signals[$0] != nil }
  }
}

struct SampleMerge {
  /// The time of the latest sample: a merged block repeats earlier values.
  private var position = Int64.min

  /// Calls `body` for each sample of the chunk, with its wall-clock time.
  mutating func read(_ chunk: MergedChunk, _ body: (TripSample) -> Void) {
    let (offset, start) = (chunk.offset, chunk.continues ? Int64.min : chunk.start)
    var (position, sources) = (position, chunk.sources)
    chunk.times.withUnsafeBufferPointer { times in
      chunk.values.withUnsafeBufferPointer { values in
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
}
