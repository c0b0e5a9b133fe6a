// Converts the samples of one series, block by block, into segments: a number and the time for which it was valid. A value is valid until
// the next sample, and at most until the end of its block, unless the next block continues it.

import Protocols
import SampleBlocks

/// A number that was valid from `start` to `end`, on the time axis of its blocks.
struct Segment: Equatable {
  var value: Double
  var start: Int64
  var end: Int64
  /// 1 if it begins with a sample, 0 if it continues a value.
  var samples: Int
}

struct SegmentReader {
  private var value: Double?
  /// The number of samples that the next segment begins with.
  private var samples = 0
  /// The time up to which segments were produced.
  private var position: Int64?
  private var lastSample: Int64?

  /// Reads the next block, which covers `start` to `end`.
  mutating func read(_ column: Column?, from start: Int64, to end: Int64, continues: Bool, _ body: (Segment) -> Void) {
    if !continues || position == nil {
      (value, samples, lastSample) = (nil, 0, nil)
      position = start
    }
    if let column {
      for index in 0..<column.count {
        let time = column.times[index]
        // A merged block repeats the values that are valid at its start.
        if let lastSample, time <= lastSample { continue }
        lastSample = time
        produce(to: time, body)
        value = column.number(index)
        samples = value != nil && time >= start ? 1 : 0
      }
    }
    produce(to: end, body)
  }

  private mutating func produce(to end: Int64, _ body: (Segment) -> Void) {
    guard let position else { return }
    if let value, end > position || samples > 0 {
      body(Segment(value: value, start: position, end: max(end, position), samples: samples))
    }
    samples = 0
    self.position = max(position, end)
  }
}
