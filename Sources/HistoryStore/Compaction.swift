// Merges recent blocks, which cover a few seconds, into blocks of several minutes, whose columns compress better and can be read
// individually, and adds their values to the rollups. A merged block begins with the values that are valid at its start. No block spans a
// gap.

import Protocols
import SQLite
import SampleBlocks

extension HistoryStore {
  /// The duration of a merged block, in microseconds.
  public static let blockDuration: Int64 = 900_000_000

  /// Merges the recent blocks. Unless `all` is true, the last ones of each boot stay unmerged until together they are as long as a merged
  /// block. Returns descriptions of damaged blocks, whose bytes stay unchanged.
  @discardableResult
  public func compact(all: Bool = true) throws(StoreError) -> [String] {
    let pairs = try database.rows(
      "SELECT DISTINCT r.device, r.boot, d.name, b.uuid, b.offset, b.synchronised FROM recent r JOIN device d ON d.id = r.device "
        + "JOIN boot b ON b.id = r.boot"
    ) { (row) throws(StoreError) in
      (
        device: row.number(0), name: row.text(2),
        boot: Boot(id: row.number(1), uuid: row.text(3), offset: row.int(4), isSynchronised: row.bool(5))
      )
    }
    var damage: [String] = []
    for pair in pairs {
      var found: [String] = []
      try performWrite { () throws(StoreError) in found = try compact(pair.device, pair.name, pair.boot, all: all) }
      damage += found
    }
    return damage
  }

  private func compact(_ device: Int, _ name: String, _ boot: Boot, all: Bool) throws(StoreError) -> [String] {
    var damage: [String] = []
    var merger = BlockMerger()
    let references = try reader.recent(device: device, boot: boot.id)
    if references.first?.continues == true {
      let previous = try database.rows(
        "SELECT data FROM block WHERE device = ? AND boot = ? ORDER BY start DESC, id DESC LIMIT 1", [.int(device), .int(boot.id)]
      ) { (row) throws(StoreError) in row.blob(0) }
      if let bytes = previous.first, let block = try? Block(bytes) { try? merger.resume(after: block) }
    }
    var merged: [BlockMerger.Merged] = []
    var lastMergedID = 0
    /// Finishes the current block, which replaces the recent blocks up to and including this one.
    func finish(through reference: BlockReference) {
      if let block = merger.finish() { merged.append(block) }
      lastMergedID = reference.id
    }
    var previous: BlockReference?
    for reference in references {
      if let previous, !reference.continues { finish(through: previous) }
      previous = reference
      guard let bytes = try reader.bytes(reference) else { continue }
      do throws(BlockError) {
        try merger.add(Block(bytes), continues: reference.continues)
      } catch {
        damage.append(reference.describe(name, boot, error))
        // It is unknown whether the previous values are still valid during and after the damaged block.
        finish(through: reference)
        merger = merger.interrupted()
        merged.append(BlockMerger.Merged(start: reference.start, end: reference.end, continues: reference.continues, bytes: bytes))
      }
      if merger.duration >= Self.blockDuration { finish(through: reference) }
    }
    if all, let previous { finish(through: previous) }
    guard lastMergedID > 0 else { return damage }
    // Delete first, so that the merged blocks can reuse the pages when the disk is full.
    try database.run("DELETE FROM recent WHERE device = ? AND boot = ? AND id <= ?", [.int(device), .int(boot.id), .int(lastMergedID)])
    for block in merged {
      try database.run(
        "INSERT INTO block (device, boot, start, \"end\", continues, data) VALUES (?, ?, ?, ?, ?, ?)",
        [.int(device), .int(boot.id), .int(block.start), .int(block.end), .bool(block.continues), .blob(block.bytes)])
      try database.run(
        "UPDATE boot SET first = min(ifnull(first, ?1), ?1), last = max(ifnull(last, ?2), ?2) WHERE id = ?3",
        [.int(block.start), .int(block.end), .int(boot.id)])
    }
    for (series, aggregates) in merger.takeRollups() {
      try database.addRollups(aggregates, .minute, boot: boot.id, series: series)
      var hours = Aggregates(width: RollupResolution.hour.width)
      for (index, aggregate) in aggregates.intervals.sorted(by: { $0.key < $1.key }) {
        hours.add(aggregate, at: hours.index(of: Int64(index) * aggregates.width))
      }
      try database.addRollups(hours, .hour, boot: boot.id, series: series)
    }
    return damage
  }
}

/// Merges consecutive blocks, without I/O.
struct BlockMerger {
  struct Merged {
    var start: Int64
    var end: Int64
    var continues: Bool
    var bytes: [UInt8]
  }

  private var builder = BlockBuilder()
  private var span: (start: Int64, end: Int64, continues: Bool)?
  /// The latest sample of each series.
  private var latest: [Int: Sample] = [:]
  private var segments: [Int: SegmentReader] = [:]
  /// The aggregates per minute of the finished blocks, and of the current one.
  private var rollups: [Int: Aggregates] = [:]
  private var unfinished: [Int: Aggregates] = [:]

  /// The time covered by the blocks that were added since the last `finish()`, in microseconds.
  var duration: Int64 { span.map { $0.end - $0.start } ?? 0 }

  /// Continues after a merged block, whose last values are valid until the next block.
  mutating func resume(after block: Block) throws(BlockError) {
    for column in try block.columns() {
      guard column.count > 0 else { continue }
      latest[column.series] = column[column.count - 1]
      segments[column.series, default: SegmentReader()].read(column, from: block.start, to: block.end, continues: false) { _ in }
    }
  }

  mutating func add(_ block: Block, continues: Bool) throws(BlockError) {
    let columns = try block.columns()
    if !continues { (latest, segments) = ([:], [:]) }
    if let span {
      self.span = (span.start, max(span.end, block.end), span.continues)
    } else {
      for (series, sample) in latest { try builder.append(sample.content, series: series, at: sample.time) }
      span = (block.start, block.end, continues)
    }
    var unreported = Set(segments.keys)
    for column in columns {
      try builder.append(column)
      unreported.remove(column.series)
      read(column, column.series, block, continues)
      if column.count > 0, column.times[column.count - 1] >= latest[column.series]?.time ?? .min {
        latest[column.series] = column[column.count - 1]
      }
    }
    for series in unreported { read(nil, series, block, continues) }
  }

  private mutating func read(_ column: Column?, _ series: Int, _ block: Block, _ continues: Bool) {
    var aggregates = unfinished[series] ?? Aggregates(width: RollupResolution.minute.width)
    unfinished[series] = nil
    segments[series, default: SegmentReader()].read(column, from: block.start, to: block.end, continues: continues) { aggregates.add($0) }
    if !aggregates.isEmpty { unfinished[series] = aggregates }
  }

  /// Returns a block of everything that was added since the last call, or nil if nothing was added.
  mutating func finish() -> Merged? {
    guard let span else { return nil }
    self.span = nil
    for (series, aggregates) in unfinished {
      for (index, aggregate) in aggregates.intervals { rollups[series, default: aggregates.empty].add(aggregate, at: index) }
    }
    unfinished = [:]
    return Merged(
      start: span.start, end: span.end, continues: span.continues,
      bytes: builder.build(from: span.start, to: span.end, layout: .columns))
  }

  /// Returns a merger with the same rollups, but without values that carry over from earlier blocks.
  func interrupted() -> BlockMerger {
    var merger = BlockMerger()
    merger.rollups = rollups
    return merger
  }

  /// Removes and returns the aggregates per minute of all finished blocks.
  mutating func takeRollups() -> [Int: Aggregates] {
    defer { rollups = [:] }
    return rollups
  }
}
