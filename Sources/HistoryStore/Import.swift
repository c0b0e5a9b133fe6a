// Imports blocks from other sources. Each source is stored as a boot of its own, whose times are wall-clock times.

import Protocols
import SQLite
import SampleBlocks

/// A block to import. It has series IDs of its own; its times are microseconds since the Unix epoch.
public struct ImportedBlock: Sendable {
  public var device: String
  /// The identifier of the origin: a block of the same source and time is imported only once.
  public var source: String
  /// The series in the block, by the IDs that the block uses.
  public var series: [Int: SeriesKey]
  public var block: Block
  /// Whether recording continued without a gap since the previous block of the source.
  public var continues: Bool

  /// Creates a block to import.
  public init(device: String, source: String, series: [Int: SeriesKey], block: Block, continues: Bool) {
    self.device = device
    self.source = source
    self.series = series
    self.block = block
    self.continues = continues
  }
}

extension HistoryStore {
  /// Imports a block, which is on the disk when this returns. Returns the number of samples, or 0 if the block was imported before.
  public func add(_ imported: ImportedBlock) throws(StoreError) -> Int {
    let block = imported.block
    let (bytes, count) = try renumbered(imported)
    let device = try device(imported.device)
    let boot = try self.boot("import:\(imported.source)", offset: 0)
    var isNew = true
    try performWrite { () throws(StoreError) in
      try database.run(
        "INSERT INTO imported (device, boot, start, \"end\") VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [.int(device), .int(boot), .int(block.start), .int(block.end)])
      isNew = database.changes > 0
      guard isNew else { return }
      try checkOverlap(imported, device)
      try database.run(
        "INSERT INTO recent (device, boot, start, \"end\", continues, data) VALUES (?, ?, ?, ?, ?, ?)",
        [.int(device), .int(boot), .int(block.start), .int(block.end), .bool(imported.continues), .blob(bytes)])
    }
    return isNew ? count : 0
  }

  /// Returns the block with the series IDs of this store, and the number of its samples.
  private func renumbered(_ imported: ImportedBlock) throws(StoreError) -> ([UInt8], Int) {
    var builder = BlockBuilder()
    let columns: [Column]
    do throws(BlockError) { columns = try imported.block.columns() } catch {
      throw StoreError(.invalid, "the block is damaged: \(error)")
    }
    for column in columns {
      guard let key = imported.series[column.series] else {
        throw StoreError(.invalid, "the block contains series \(column.series), which is not described; add it to series")
      }
      let id = try series(SeriesKey(device: imported.device, property: key.property, type: key.type, unit: key.unit))
      for index in 0..<column.count {
        let content = column.content(index)
        if case .value(let value) = content, value.type != key.type {
          throw StoreError(.invalid, "series \(column.series) has values of type \(value.type.rawValue), not \(key.type.rawValue)")
        }
        do throws(BlockError) { try builder.append(content, series: id, at: column.times[index]) } catch {
          throw StoreError(.invalid, "\(error)")
        }
      }
    }
    let count = builder.count
    return (builder.build(from: imported.block.start, to: imported.block.end, layout: .whole, effort: .fast), count)
  }

  /// Throws if the imported values overlap recorded ones in time.
  private func checkOverlap(_ imported: ImportedBlock, _ device: Int) throws(StoreError) {
    let block = imported.block
    for boot in try reader.boots(from: block.start, to: block.end) {
      // The blocks of a boot do not overlap each other: the last one that begins before the end of this one also ends last.
      for table in boot.hasRecent ? ["block", "recent"] : ["block"] {
        let sql = "SELECT \"end\" FROM \(table) WHERE device = ? AND boot = ? AND start < ? ORDER BY start DESC LIMIT 1"
        let ends = try database.rows(sql, [.int(device), .int(boot.id), .int(block.end.subtractingClamped(boot.offset))]) {
          (row) throws(StoreError) in row.int(0)
        }
        guard let end = ends.first, end + boot.offset > block.start else { continue }
        let (from, to) = (WallTime.isoTime(block.start), WallTime.isoTime(block.end))
        throw StoreError(.invalid, "values of \(imported.device) from \(from) to \(to) are already recorded; delete them first")
      }
    }
  }
}
