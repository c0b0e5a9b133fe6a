// Batches of samples of one device that cover a few seconds. For a device that reports nothing, only a periodic record that its last values
// are still valid is stored. No I/O.

import HistoryStore
import Protocols
import SQLite
import SampleBlocks

/// The samples to store, and the further data that a block requires.
struct SampleBatch: Sendable {
  struct Entry: Sendable {
    var key: Int
    var time: Int64
    var content: Reading.Content
  }

  var device: String
  /// In µs of the boot.
  var start: Int64
  var end: Int64
  /// Whether recording continued without a gap since the previous batch.
  var continues: Bool
  var keys: [SeriesKey]
  var entries: [Entry]
}

/// Collects the samples of one device.
struct BatchBuilder {
  /// The maximum time before a sample is stored, in µs. With the pause before it is read and the time of the write, at most 10 s are lost.
  static let maxDelay: Int64 = 8_000_000
  /// The interval of the records for a device without new samples, in µs.
  static let idleInterval: Int64 = 600_000_000
  /// The number of samples after which a batch is stored early.
  static let maxCount = 50_000

  let device: String
  private var start: Int64
  private var continues = false
  private var keys: [SeriesKey] = []
  private var indexes: [SeriesKey: Int] = [:]
  private var entries: [SampleBatch.Entry] = []
  /// When the first sample arrived.
  private var waitingSince: Int64?

  /// Starts recording a device.
  init(device: String, at now: Int64) { (self.device, start) = (device, now) }

  mutating func append(_ content: Reading.Content, of key: SeriesKey, at time: Int64, now: Int64) {
    let index: Int
    if let known = indexes[key] {
      index = known
    } else {
      index = keys.count
      indexes[key] = index
      keys.append(key)
    }
    entries.append(SampleBatch.Entry(key: index, time: time, content: content))
    if waitingSince == nil { waitingSince = now }
  }

  /// When the samples must be stored.
  var due: Int64 {
    if entries.count >= Self.maxCount { return .min }
    return waitingSince.map { $0 + Self.maxDelay } ?? start + Self.idleInterval
  }

  /// Returns the collected samples, whose last values were valid until `end`, or nil if there is nothing to store.
  mutating func cut(at end: Int64) -> SampleBatch? {
    let end = entries.reduce(end) { max($0, $1.time) }
    guard !entries.isEmpty || continues && end > start else { return nil }
    defer {
      (start, continues, waitingSince) = (max(start, end), true, nil)
      (keys, indexes, entries) = ([], [:], [])
    }
    return SampleBatch(
      device: device, start: start, end: max(start, end), continues: continues, keys: keys, entries: entries)
  }
}

extension HistoryStore {
  /// Appends a batch. Returns the number of blocks that were dropped because the disk is full.
  func append(_ batch: SampleBatch, boot: Int) throws(StoreError) -> Int {
    let ids = try series(batch.keys)
    var counts = [Int](repeating: 0, count: ids.count)
    for entry in batch.entries { counts[entry.key] += 1 }
    var (builder, start, continues, dropped) = (BlockBuilder(), batch.start, batch.continues, 0)
    // The index of the column of each key, or -1.
    var columns = [Int](repeating: -1, count: ids.count)
    func flush(_ end: Int64) throws(StoreError) {
      let bytes = builder.build(from: start, to: end, layout: .whole, effort: .fast)
      dropped += try append(NewBlock(device: batch.device, boot: boot, start: start, end: end, continues: continues, bytes: bytes))
      (start, continues) = (end, true)
      columns = [Int](repeating: -1, count: ids.count)
    }
    for entry in batch.entries {
      do throws(BlockError) {
        if columns[entry.key] < 0 { columns[entry.key] = try builder.column(of: ids[entry.key], capacity: counts[entry.key]) }
        try builder.append(entry.content, at: entry.time, toColumn: columns[entry.key])
      } catch {
        assertionFailure("the type of a value matches its series, and there are fewer columns than a block can have: \(error)")
      }
      if builder.isFull { try flush(max(start, min(entry.time, batch.end))) }
    }
    try flush(batch.end)
    return dropped
  }
}
