// Renames a device, or joins the values of a device that was renamed in the daemon with those that it has recorded since.

import Protocols
import SQLite
import SampleBlocks

extension HistoryStore {
  /// Gives the values of a device another name. If there are values under this name already, for example because the device was renamed in
  /// the daemon first, both become those of one device. Fails if values of both were recorded at the same time.
  public func rename(_ device: String, to name: String) throws(StoreError) {
    let source = try reader.deviceID(device)
    guard device != name else { return }
    try compact()
    let target = Int(try database.number("SELECT id FROM device WHERE name = ?", [.text(name)]))
    try performWrite { () throws(StoreError) in
      if target > 0 {
        try rejectOverlap(source, device, target, name)
        // Block contents are rewritten where both devices have the same series: take the device with fewer blocks.
        let count = "SELECT count(*) FROM block WHERE device = ?"
        let isSourceSmaller = try database.number(count, [.int(source)]) < database.number(count, [.int(target)])
        let (moved, remaining) = isSourceSmaller ? (source, target) : (target, source)
        try join(moved, into: remaining)
        try database.run("UPDATE device SET name = ? WHERE id = ?", [.text(name), .int(remaining)])
      } else {
        try database.run("UPDATE device SET name = ? WHERE id = ?", [.text(name), .int(source)])
      }
    }
    forgetNames()
  }

  private func rejectOverlap(_ source: Int, _ device: String, _ target: Int, _ name: String) throws(StoreError) {
    let sql = """
      WITH span AS (SELECT b.device, b.start + o.offset AS start, b."end" + o.offset AS "end" FROM block b JOIN boot o ON o.id = b.boot
        WHERE b.device IN (?1, ?2)),
      ordered AS (SELECT device, start, max("end") FILTER (WHERE device = ?1) OVER earlier AS source,
        max("end") FILTER (WHERE device = ?2) OVER earlier AS target FROM span
        WINDOW earlier AS (ORDER BY start, "end" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
      SELECT start FROM ordered WHERE iif(device = ?1, target, source) > start LIMIT 1
      """
    let overlap = try database.rows(sql, [.int(source), .int(target)]) { (row) throws(StoreError) in row.int(0) }.first
    guard let overlap else { return }
    throw StoreError(
      .invalid,
      "cannot rename \(device): \(device) and \(name) both have values at \(WallTime.isoTime(overlap)); choose another name, or delete one of "
        + "them there")
  }

  /// Makes the values of a device those of another one, and removes it. The remaining device takes its name.
  private func join(_ moved: Int, into remaining: Int) throws(StoreError) {
    let shared = try database.rows(
      "SELECT m.id, r.id FROM series m JOIN series r ON r.property = m.property AND r.type = m.type AND r.unit = m.unit "
        + "WHERE m.device = ? AND r.device = ?", [.int(moved), .int(remaining)]
    ) { (row) throws(StoreError) in (moved: row.number(0), remaining: row.number(1)) }
    try renumberBlocks(of: moved, Dictionary(uniqueKeysWithValues: shared.map { ($0.moved, $0.remaining) }))
    for (old, new) in shared {
      try moveRollups(from: old, to: new)
      try database.run("DELETE FROM series WHERE id = ?", [.int(old)])
    }
    for table in ["series", "block", "period", "imported"] {
      try database.run("UPDATE OR REPLACE \(table) SET device = ? WHERE device = ?", [.int(remaining), .int(moved)])
    }
    try database.run("DELETE FROM device WHERE id = ?", [.int(moved)])
  }

  /// Changes the IDs of series in the blocks of a device.
  private func renumberBlocks(of device: Int, _ ids: [Int: Int]) throws(StoreError) {
    for id in try database.rows("SELECT id FROM block WHERE device = ?", [.int(device)], { (row) throws(StoreError) in row.number(0) }) {
      let found = try database.rows("SELECT data FROM block WHERE id = ?", [.int(id)]) { (row) throws(StoreError) in row.blob(0) }
      guard let bytes = found.first else { continue }
      // A damaged block is kept as it is: its values are unreadable under any ID, and check goes on reporting it.
      guard let block = try? Block(bytes), block.series.contains(where: { ids[$0] != nil }), let columns = try? block.columns() else {
        continue
      }
      var builder = BlockBuilder()
      do throws(BlockError) {
        for column in columns { try builder.append(column, series: ids[column.series] ?? column.series) }
      } catch {
        throw StoreError(.failed, "cannot renumber block \(id): \(error)")
      }
      let renumbered = builder.build(from: block.start, to: block.end, layout: .columns)
      try database.run("UPDATE block SET data = ? WHERE id = ?", [.blob(renumbered), .int(id)])
    }
  }

  private func moveRollups(from old: Int, to new: Int) throws(StoreError) {
    for resolution in RollupResolution.allCases {
      let rows = try database.rows(
        "SELECT boot, data FROM rollup WHERE resolution = ? AND series = ?", [.int(resolution.rawValue), .int(old)]
      ) { (row) throws(StoreError) in (boot: row.number(0), bytes: row.blob(1)) }
      for row in rows {
        var aggregates = Aggregates(width: resolution.width)
        for (index, aggregate) in (try? RollupCoding.decode(row.bytes, resolution)) ?? [:] { aggregates.add(aggregate, at: index) }
        try database.addRollups(aggregates, resolution, boot: row.boot, series: new)
      }
      try database.run("DELETE FROM rollup WHERE resolution = ? AND series = ?", [.int(resolution.rawValue), .int(old)])
    }
  }
}
