// Checks the database and every block.

import SQLite
import SampleBlocks

/// The result of a check.
public struct CheckResult: Sendable, Equatable {
  public var blocks = 0
  /// Descriptions of the damage.
  public var damage: [String] = []
}

extension HistoryReader {
  /// Reads all blocks and rollups completely, and checks the structure of the database. `progress` receives the number of blocks read
  /// so far, and the total.
  public func check(progress: (Int, Int) -> Void = { _, _ in }) throws(StoreError) -> CheckResult {
    var result = CheckResult()
    let findings = try database.rows("PRAGMA quick_check(20)") { (row) throws(StoreError) in row.text(0) }
    if findings != ["ok"] { result.damage += findings.map { "\(database.path): \($0)" } }
    let total = Int(try database.number("SELECT (SELECT count(*) FROM block) + (SELECT count(*) FROM recent)"))
    for table in [BlockReference.Table.block, .recent] {
      do throws(StoreError) {
        try check(table, total, progress, &result)
      } catch {
        try result.note(error)
      }
    }
    do throws(StoreError) {
      result.damage += try damagedRollups()
    } catch {
      try result.note(error)
    }
    return result
  }

  private func check(
    _ table: BlockReference.Table, _ total: Int, _ progress: (Int, Int) -> Void, _ result: inout CheckResult
  ) throws(StoreError) {
    var last: Int64 = -1
    while true {
      // Read one row at a time, so that writers are never blocked for long.
      let found = try database.rows(
        """
        SELECT t.id, t.start, t."end", t.continues, d.name, b.id, b.uuid, b.offset, b.synchronised FROM \(table.rawValue) t
        LEFT JOIN device d ON d.id = t.device LEFT JOIN boot b ON b.id = t.boot WHERE t.id > ? ORDER BY t.id LIMIT 1
        """, [.int(last)]
      ) { (row) throws(StoreError) in
        (
          reference: BlockReference(table: table, id: row.number(0), start: row.int(1), end: row.int(2), continues: row.bool(3)),
          device: row.text(4), boot: Boot(id: row.number(5), uuid: row.text(6), offset: row.int(7), isSynchronised: row.bool(8))
        )
      }
      guard let row = found.first else { return }
      last = Int64(row.reference.id)
      if let block = try block(row.reference) {
        do throws(BlockError) {
          _ = try block.get().columns()
        } catch {
          result.damage.append(row.reference.describe(row.device, row.boot, error))
        }
        result.blocks += 1
      }
      progress(result.blocks, total)
    }
  }

  private func damagedRollups() throws(StoreError) -> [String] {
    try database.rows("SELECT resolution, boot, start, series, data FROM rollup") { (row) throws(StoreError) -> String? in
      let place = "rollup of series \(row.number(3)) in boot \(row.number(1)) at \(row.int(2) / 1_000_000) s"
      guard let resolution = RollupResolution(rawValue: row.number(0)) else { return "\(place): unknown resolution \(row.int(0))" }
      do throws(BlockError) {
        _ = try RollupCoding.decode(row.blob(4), resolution)
        return nil
      } catch {
        return "\(place): \(error)"
      }
    }.compactMap { $0 }
  }
}

extension CheckResult {
  /// Adds a damaged part of the database; throws any other error.
  fileprivate mutating func note(_ error: StoreError) throws(StoreError) {
    guard error.kind == .damaged else { throw error }
    damage.append(error.description)
  }
}
