// Streams the samples of series of one device for the method Samples: a limited number at a time, in chronological order.

import HistoryStore
import Protocols
import SQLite
import SampleBlocks
import Varlink

struct SampleStream {
  /// The number of samples in one reply.
  static let count = 4000

  private struct State {
    /// The time of the last sample, on the boot clock.
    var last: Int64?
    /// The latest sample at or before the start of the range, if it has not been sent yet.
    var initial: HistoryContract.Sample?
  }

  private var chunks: ChunkIterator
  private let range: ClosedRange<Int64>
  private let span: ClosedRange<Int64>
  private var states: [Int: State] = [:]
  private var pending: ArraySlice<HistoryContract.Sample> = []
  private var end: Int64?
  private var hasEnded = false
  private var reported = 0

  /// Creates a stream of these series of a device. `span` is the recorded time.
  init(
    _ reader: HistoryReader, device: String, series: [StoredSeries], in range: ClosedRange<Int64>, span: ClosedRange<Int64>?
  ) throws(StoreError) {
    self.range = range
    self.span = (span ?? 0...0).clamped(to: range)
    chunks = try reader.chunks(of: device, series: Set(series.map(\.id)), in: range)
  }

  /// The next samples, or nil at the end. The last result can be empty.
  mutating func next() throws(StoreError) -> HistoryContract.SamplesMethod.Result? {
    while pending.isEmpty, !hasEnded {
      guard let chunk = try chunks.next() else {
        hasEnded = true
        pending = initials()[...]
        break
      }
      pending = read(chunk)[...]
    }
    let damage = chunks.damage.dropFirst(reported)
    guard !pending.isEmpty || !damage.isEmpty else { return nil }
    reported = chunks.damage.count
    let samples = Array(pending.prefix(Self.count))
    pending = pending.dropFirst(Self.count)
    return HistoryContract.SamplesMethod.Result(
      samples: samples.isEmpty ? nil : samples, damage: damage.isEmpty ? nil : Array(damage), progress: progress)
  }

  private var progress: Double? {
    guard let end, span.upperBound > span.lowerBound else { return nil }
    return min(max(Double(end - span.lowerBound) / Double(span.upperBound - span.lowerBound), 0), 1)
  }

  private mutating func read(_ chunk: Chunk) -> [HistoryContract.Sample] {
    var samples: [HistoryContract.Sample] = []
    if !chunk.continues {
      for series in states.keys.sorted() where states[series]?.last != nil {
        if let end, end < range.lowerBound {
          states[series]?.initial = nil
        } else if let end {
          if let initial = states[series]?.initial { samples.append(initial) }
          states[series]?.initial = nil
          if end <= range.upperBound { samples.append(.init(series: series, time: Int(end), reason: "not recorded")) }
        }
        states[series]?.last = nil
      }
    }
    let newEnd = chunk.end + chunk.boot.offset
    for column in chunk.columns {
      var state = states[column.series] ?? State()
      for index in 0..<column.count {
        let time = column.times[index]
        if let last = state.last, time <= last { continue }
        state.last = time
        let wall = time + chunk.boot.offset
        guard wall <= range.upperBound else { break }
        let sample = Self.sample(column.content(index), of: column.series, at: wall)
        if wall <= range.lowerBound {
          state.initial = sample
          continue
        }
        if let initial = state.initial { samples.append(initial) }
        state.initial = nil
        samples.append(sample)
      }
      states[column.series] = state
    }
    end = newEnd
    if newEnd >= range.lowerBound { samples = initials() + samples }
    // A block stores one series after the other.
    samples.sort { $0.time < $1.time }
    return samples
  }

  /// Returns the samples that are valid at the start of the range and have not been sent yet.
  private mutating func initials() -> [HistoryContract.Sample] {
    var samples: [HistoryContract.Sample] = []
    for series in states.keys.sorted() {
      if let initial = states[series]?.initial { samples.append(initial) }
      states[series]?.initial = nil
    }
    return samples
  }

  private static func sample(_ content: Reading.Content, of series: Int, at time: Int64) -> HistoryContract.Sample {
    switch content {
    case .value(let value): HistoryContract.Sample(series: series, time: Int(time), value: value.finiteValue, reason: value.finiteReason)
    case .absent(let reason): HistoryContract.Sample(series: series, time: Int(time), reason: reason)
    }
  }
}

extension Value {
  /// The value, or nil for a number that JSON cannot represent.
  fileprivate var finiteValue: Value? { if case .float(let number) = self, !number.isFinite { nil } else { self } }
  fileprivate var finiteReason: String? { finiteValue == nil ? "not a number" : nil }
}
