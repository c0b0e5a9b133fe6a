// Reads the samples of one device in a time range block by block, so that memory use does not grow with the range.

import Protocols
import SQLite
import SampleBlocks

/// A few minutes of the requested series.
public struct Chunk: Sendable {
  public let boot: Boot
  /// The time that it covers, in microseconds of the boot.
  public let start: Int64
  public let end: Int64
  /// Whether the last values of the previous chunk are valid until this one. Otherwise there is a gap.
  public let continues: Bool
  /// The columns of the requested series that have samples, in ascending order of series ID. Samples before `start` repeat the values that
  /// are valid at the start. If this chunk continues the previous one, ignore every sample that is not later than the last sample of the
  /// same series in the previous chunk.
  public let columns: [Column]
}

/// The blocks of one device in a time range. The first blocks may begin before the range, to provide the values valid at its start.
public struct ChunkIterator {
  private let reader: HistoryReader
  private let device: (id: Int, name: String)
  private let columns: (Block) throws(BlockError) -> [Column]
  private let range: ClosedRange<Int64>
  private var boots: ArraySlice<Boot>
  private var references: ArraySlice<BlockReference> = []
  private var boot: Boot?
  private var position = Int64.min
  private var isInterrupted = true
  /// The blocks that could not be read and were skipped, with the reason.
  public private(set) var damage: [String] = []
  /// The wall-clock times (µs) of these blocks.
  public private(set) var damagedRanges: [ClosedRange<Int64>] = []

  fileprivate init(
    _ reader: HistoryReader, _ device: (id: Int, name: String), _ range: ClosedRange<Int64>,
    _ columns: @escaping (Block) throws(BlockError) -> [Column]
  ) throws(StoreError) {
    self.reader = reader
    self.device = device
    self.columns = columns
    self.range = range
    boots = try reader.boots(from: range.lowerBound, to: range.upperBound)[...]
  }

  public mutating func next() throws(StoreError) -> Chunk? {
    while true {
      guard let boot, let reference = references.popFirst() else {
        guard let next = boots.popFirst() else { return nil }
        (boot, position, isInterrupted) = (next, .min, true)
        references = try find(from: range.lowerBound.subtractingClamped(next.offset), in: next)
        continue
      }
      guard let block = try reader.block(reference) else {
        // Merged or dropped in the meantime: search again from here.
        references = try find(from: max(position, reference.start), in: boot).filter { $0.end > position }[...]
        if var first = references.popFirst() {
          if first.start < position { (first.start, first.continues) = (position, true) }
          references = [first] + references
        }
        continue
      }
      do throws(BlockError) {
        let columns = try columns(block.get())
        defer { (position, isInterrupted) = (reference.end, false) }
        return Chunk(
          boot: boot, start: reference.start, end: reference.end, continues: reference.continues && !isInterrupted, columns: columns)
      } catch {
        damage.append(reference.describe(device.name, boot, error))
        let start = reference.start + boot.offset
        damagedRanges.append(start...max(start, reference.end + boot.offset))
        isInterrupted = true
      }
    }
  }

  private func find(from start: Int64, in boot: Boot) throws(StoreError) -> ArraySlice<BlockReference> {
    let end = range.upperBound.subtractingClamped(boot.offset)
    return try reader.references(device: device.id, boot: boot, from: start, to: end)[...]
  }
}

extension BlockReference {
  /// Returns the description of a damaged block for messages.
  func describe(_ device: String, _ boot: Boot, _ error: BlockError) -> String {
    "\(table == .recent ? "recent block" : "block") \(id) of \(device) at \(WallTime.isoTime(start + boot.offset)) (\((end - start) / 1_000_000) s): \(error)"
  }
}

extension Int64 {
  func subtractingClamped(_ other: Int64) -> Int64 {
    let (difference, overflows) = subtractingReportingOverflow(other)
    return overflows ? (self < 0 ? .min : .max) : difference
  }
}

/// One element of the history of a series.
public enum HistorySample: Sendable, Equatable {
  /// A sample, with its wall-clock time in µs. The first one may precede the range: its value is valid at the start of the range.
  case sample(Sample)
  /// No value is known from this time (µs) until the next sample.
  case gap(Int64)
}

/// The samples of one series in a time range.
public struct SampleIterator {
  private var chunks: ChunkIterator
  private let range: ClosedRange<Int64>
  private var pending: ArraySlice<HistorySample> = []
  /// The latest sample at or before the start of the range.
  private var initial: Sample?
  private var last: Int64?
  private var end: Int64?

  fileprivate init(_ chunks: ChunkIterator, _ range: ClosedRange<Int64>) {
    self.chunks = chunks
    self.range = range
  }

  /// The blocks that could not be read and were skipped, with the reason.
  public var damage: [String] { chunks.damage }

  public mutating func next() throws(StoreError) -> HistorySample? {
    while pending.isEmpty {
      guard let chunk = try chunks.next() else {
        guard initial != nil else { return nil }
        flushInitial()
        break
      }
      read(chunk)
    }
    return pending.popFirst()
  }

  private mutating func read(_ chunk: Chunk) {
    var samples: [HistorySample] = []
    if !chunk.continues {
      if let end, end >= range.lowerBound, last != nil { samples.append(.gap(end)) }
      if (end ?? .min) < range.lowerBound { initial = nil }
      last = nil
    }
    for index in 0..<(chunk.columns.first?.count ?? 0) {
      guard var sample = chunk.columns.first?[index] else { break }
      if let last, sample.time <= last { continue }
      last = sample.time
      sample.time += chunk.boot.offset
      if sample.time <= range.lowerBound {
        initial = sample
      } else if sample.time <= range.upperBound {
        samples.append(.sample(sample))
      }
    }
    end = chunk.end + chunk.boot.offset
    pending = samples[...]
    if !samples.isEmpty || end ?? .min >= range.lowerBound { flushInitial() }
  }

  private mutating func flushInitial() {
    guard let sample = initial else { return }
    initial = nil
    pending = [.sample(sample)] + pending
  }
}

extension HistoryReader {
  /// The blocks of a device between two wall-clock times (µs), with all series or only some.
  public func chunks(of device: String, series: Set<Int>? = nil, in range: ClosedRange<Int64>) throws(StoreError) -> ChunkIterator {
    try chunks(of: device, in: range) { (block) throws(BlockError) in try block.columns { series?.contains($0) ?? true } }
  }

  /// The blocks of a device between two wall-clock times (µs), with the columns that `columns` reads from each of them.
  public func chunks(
    of device: String, in range: ClosedRange<Int64>, columns: @escaping (Block) throws(BlockError) -> [Column]
  ) throws(StoreError) -> ChunkIterator {
    try ChunkIterator(self, (try deviceID(device), device), range, columns)
  }

  /// The samples of a series between two wall-clock times (µs).
  public func samples(of series: Series, in range: ClosedRange<Int64>) throws(StoreError) -> SampleIterator {
    SampleIterator(try chunks(of: series.key.device, series: [series.id], in: range), range)
  }
}
