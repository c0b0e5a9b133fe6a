// Drops old merged blocks, by age, by size, or because the disk is full. Rollups and periods stay; periods that lose blocks are frozen.

import SQLite

extension HistoryStore {
  /// Drops the merged blocks that are certain to have ended before a wall-clock time (µs). Returns the number of dropped blocks.
  @discardableResult
  public func drop(before time: Int64) throws(StoreError) -> Int {
    let blocks = try oldest(endingBefore: time)
    try drop(blocks)
    return blocks.count
  }

  /// Drops the oldest merged blocks until the data takes up at most `size` bytes, or none are left. Returns the number of dropped blocks.
  @discardableResult
  public func limit(toSize size: Int) throws(StoreError) -> Int {
    var dropped = 0
    while try reader.size() > size {
      let count = try dropOldest(32)
      if count == 0 { break }
      dropped += count
    }
    return dropped
  }

  /// Drops at most `count` of the oldest merged blocks. Returns the number of dropped blocks.
  func dropOldest(_ count: Int) throws(StoreError) -> Int {
    let blocks = try oldest(limit: count)
    try drop(blocks)
    return blocks.count
  }

  private struct OldBlock {
    var id: Int
    var device: Int
    /// Wall-clock time.
    var start: Int64
    var end: Int64
  }

  /// The merged blocks, the oldest first. The time of a boot whose clock was not synchronised can be far too early, so its blocks are as
  /// old as the first values of the next boot with a certain time, or without one are newer than all others.
  private func oldest(endingBefore time: Int64? = nil, limit: Int = .max) throws(StoreError) -> [OldBlock] {
    try database.rows(
      """
      WITH ends AS (
        SELECT b.id, b.device, o.id AS boot, b.start + o.offset AS start, b."end" + o.offset AS "end",
          CASE WHEN o.certain THEN b."end" + o.offset ELSE o.next END AS latest
        FROM block b JOIN (
          SELECT id, offset, synchronised OR uuid LIKE 'import:%' AS certain, min(CASE WHEN synchronised THEN first + offset END)
            OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next
          FROM boot
        ) o ON o.id = b.boot
      )
      SELECT id, device, start, "end" FROM ends WHERE ?1 IS NULL OR latest < ?1 ORDER BY latest NULLS LAST, boot, start LIMIT ?2
      """, [time.map { .int($0) } ?? .null, .int(limit)]
    ) { (row) throws(StoreError) in OldBlock(id: row.number(0), device: row.number(1), start: row.int(2), end: row.int(3)) }
  }

  private func drop(_ blocks: [OldBlock]) throws(StoreError) {
    guard !blocks.isEmpty else { return }
    try database.transaction { () throws(StoreError) in
      for (device, blocks) in Dictionary(grouping: blocks, by: \.device) {
        let (start, end) = (blocks.reduce(.max) { min($0, $1.start) }, blocks.reduce(.min) { max($0, $1.end) })
        try freezePeriods(of: device, in: start...max(start, end))
      }
      for block in blocks { try database.run("DELETE FROM block WHERE id = ?", [.int(block.id)]) }
    }
  }
}
