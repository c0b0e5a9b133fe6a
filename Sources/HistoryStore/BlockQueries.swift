// Finds the blocks of a device within a boot, in chronological order: first the merged ones, then the recent ones.

import SQLite
import SampleBlocks

/// The location of a block and the time that it covers.
struct BlockReference: Equatable {
  enum Table: String {
    case recent, block
  }

  var table: Table
  var id: Int
  var start: Int64
  var end: Int64
  var continues: Bool
}

extension HistoryReader {
  /// Returns the blocks that overlap `start` to `end` (µs of the boot), and the earlier ones that provide the values valid at `start`.
  func references(device: Int, boot: Boot, from start: Int64, to end: Int64) throws(StoreError) -> [BlockReference] {
    var merged = try database.rows(
      "SELECT id, start, \"end\", continues FROM block WHERE device = ? AND boot = ? AND start <= ? AND \"end\" >= ? ORDER BY start, id",
      [.int(device), .int(boot.id), .int(end), .int(start)]
    ) { (row) throws(StoreError) in reference(row, .block) }
    let recent = boot.hasRecent ? try recent(device: device, boot: boot.id) : []
    guard var first = recent.firstIndex(where: { $0.end >= start && $0.start <= end }) else { return merged }
    // Merged blocks repeat the values that are valid at their start; recent ones do not.
    if merged.isEmpty {
      while first > 0, recent[first].continues { first -= 1 }
      if recent[first].continues {
        merged = try database.rows(
          "SELECT id, start, \"end\", continues FROM block WHERE device = ? AND boot = ? ORDER BY start DESC, id DESC LIMIT 1",
          [.int(device), .int(boot.id)]
        ) { (row) throws(StoreError) in reference(row, .block) }
      }
    } else {
      first = 0
    }
    return merged + recent[first...].prefix { $0.start <= end }
  }

  /// All merged blocks of a device and boot.
  func merged(device: Int, boot: Int) throws(StoreError) -> [BlockReference] {
    try database.rows(
      "SELECT id, start, \"end\", continues FROM block WHERE device = ? AND boot = ? ORDER BY start, id", [.int(device), .int(boot)]
    ) { (row) throws(StoreError) in reference(row, .block) }
  }

  func recent(device: Int, boot: Int) throws(StoreError) -> [BlockReference] {
    try database.rows(
      "SELECT id, start, \"end\", continues FROM recent WHERE device = ? AND boot = ? ORDER BY id", [.int(device), .int(boot)]
    ) { (row) throws(StoreError) in reference(row, .recent) }
  }

  private func reference(_ row: SQLRow, _ table: BlockReference.Table) -> BlockReference {
    BlockReference(table: table, id: row.number(0), start: row.int(1), end: row.int(2), continues: row.bool(3))
  }

  /// Returns a block, or why it cannot be read; nil if it was merged or dropped in the meantime. Damaged pages of the database only affect
  /// the blocks that they belong to.
  func block(_ reference: BlockReference) throws(StoreError) -> Result<Block, BlockError>? {
    do throws(StoreError) {
      guard let bytes = try bytes(reference) else { return nil }
      return Result { () throws(BlockError) in try Block(bytes) }
    } catch {
      guard error.kind == .damaged else { throw error }
      return .failure(BlockError("page", "the database is damaged here"))
    }
  }

  /// Returns the bytes of a block, or nil if it was merged or dropped in the meantime.
  func bytes(_ reference: BlockReference) throws(StoreError) -> [UInt8]? {
    let sql = reference.table == .recent ? "SELECT data FROM recent WHERE id = ?" : "SELECT data FROM block WHERE id = ?"
    return try database.rows(sql, [.int(reference.id)]) { (row) throws(StoreError) in row.blob(0) }.first
  }
}
