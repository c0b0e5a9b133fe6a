// Drops old merged blocks, by age, by size, or because the disk is full. Rollups and periods stay; periods that lose blocks are frozen.

import SQLite

extension HistoryStore {
  /// Drops the merged blocks that ended before a wall-clock time (µs). Returns the number of dropped blocks.
  @discardableResult
  public func drop(before time: Int64) throws(StoreError) -> Int {
    let blocks = try oldest(where: "b.\"end\" + o.offset < ?", [.int(time)])
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

  private func oldest(where condition: String = "1", _ arguments: [SQLValue] = [], limit: Int = .max) throws(StoreError) -> [OldBlock] {
    try database.rows(
      """
      SELECT b.id, b.device, b.start + o.offset, b."end" + o.offset FROM block b JOIN boot o ON o.id = b.boot WHERE \(condition)
      ORDER BY b.start + o.offset LIMIT \(limit)
      """, arguments
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
