// Imports blocks from elsewhere. Each source is a boot of its own, whose times are those of the wall clock.

import Protocols
import SampleBlocks

/// A block to import. Its series have numbers of their own; its times are microseconds since the Unix epoch.
public struct ImportedBlock: Sendable {
  public var device: String
  /// What identifies the origin: a block of the same source and time is imported once.
  public var source: String
  /// The series in the block, by the numbers that it uses.
  public var series: [Int: SeriesKey]
  public var block: Block
  /// Whether recording went on since the previous block of the source.
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
  /// Imports a block. When this returns, it is on the disk. Returns the number of samples; 0 if it was imported before.
  public func add(_ imported: ImportedBlock) throws(HistoryError) -> Int {
    let block = imported.block
    let (bytes, count) = try renumbered(imported)
    let device = try device(imported.device)
    let boot = try self.boot("import:\(imported.source)", offset: 0)
    var isNew = true
    try writing { () throws(HistoryError) in
      try database.run(
        "INSERT INTO imported (device, boot, start, \"end\") VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [.int(device), .int(boot), .int(block.start), .int(block.end)])
      isNew = database.changes > 0
      guard isNew else { return }
      try checkOverlap(imported, device, boot)
      try database.run(
        "INSERT INTO recent (device, boot, start, \"end\", continues, data) VALUES (?, ?, ?, ?, ?, ?)",
        [.int(device), .int(boot), .int(block.start), .int(block.end), .bool(imported.continues), .blob(bytes)])
    }
    return isNew ? count : 0
  }

  /// The block with the numbers of this store, and the number of its samples.
  private func renumbered(_ imported: ImportedBlock) throws(HistoryError) -> ([UInt8], Int) {
    var builder = BlockBuilder()
    let columns: [Column]
    do throws(BlockError) { columns = try imported.block.columns() } catch {
      throw HistoryError(.invalid, "the block is damaged: \(error)")
    }
    for column in columns {
      guard let key = imported.series[column.series] else {
        throw HistoryError(.invalid, "the block has the series \(column.series), which is not described; add it to series")
      }
      let id = try series(SeriesKey(device: imported.device, property: key.property, type: key.type, unit: key.unit))
      for index in 0..<column.count {
        let content = column.content(index)
        if case .value(let value) = content, value.type != key.type {
          throw HistoryError(.invalid, "series \(column.series) has values of type \(value.type.rawValue), not \(key.type.rawValue)")
        }
        do throws(BlockError) { try builder.append(content, series: id, at: column.times[index]) } catch {
          throw HistoryError(.invalid, "\(error)")
        }
      }
    }
    let count = builder.count
    return (builder.build(from: imported.block.start, to: imported.block.end, layout: .whole), count)
  }

  /// Values of one time can be recorded once: those that are imported must not overlap others.
  private func checkOverlap(_ imported: ImportedBlock, _ device: Int, _ boot: Int) throws(HistoryError) {
    let block = imported.block
    for table in ["block", "recent"] {
      let sql = """
        SELECT count(*) FROM \(table) t JOIN boot o ON o.id = t.boot WHERE t.device = ?1
        AND t.start + o.offset < ?3 AND t."end" + o.offset > ?2
        """
      guard try database.number(sql, [.int(device), .int(block.start), .int(block.end)]) == 0 else {
        throw HistoryError(
          .invalid,
          "values of \(imported.device) from \(block.start / 1_000_000) to \(block.end / 1_000_000) s are recorded already; delete them first"
        )
      }
    }
  }
}
