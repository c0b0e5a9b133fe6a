// Read-only queries: devices, series, boots, size. Queries for samples, plots and periods are in extensions. A second reader with its own
// connection can run on another thread while the store is being written.

import Glibc
import Protocols
import SQLite

/// Reads the store. It is not thread-safe: each thread opens its own reader.
public struct HistoryReader {
  let database: Database

  init(_ database: Database) { self.database = database }

  /// Opens the store in a directory for reading. Another process or thread may be writing to it.
  public init(directory: String) throws(StoreError) {
    guard access(directory + "/" + HistoryFile.name, F_OK) == 0 else {
      throw StoreError(.invalid, "there is no history in \(directory): \(String(cString: strerror(errno))); start vehicled-history")
    }
    database = try HistoryFile.open(directory, writable: false)
  }

  /// The names of all devices with recorded values, in alphabetical order.
  public func devices() throws(StoreError) -> [String] {
    try database.rows("SELECT name FROM device ORDER BY name") { (row) throws(StoreError) in row.text(0) }
  }

  /// All series, or those of a device.
  public func series(of device: String? = nil) throws(StoreError) -> [Series] {
    let sql = """
      SELECT s.id, d.name, s.property, s.type, s.unit FROM series s JOIN device d ON d.id = s.device
      WHERE ?1 IS NULL OR d.name = ?1 ORDER BY s.id
      """
    return try database.rows(sql, [device.map { .text($0) } ?? .null]) { (row) throws(StoreError) in
      let unit = row.text(4)
      let key = SeriesKey(
        device: row.text(1), property: row.text(2), type: ValueType(rawValue: row.text(3)) ?? .string, unit: unit.isEmpty ? nil : unit)
      return Series(id: row.number(0), key: key)
    }
  }

  /// The boots with data between two wall-clock times (µs), in chronological order of the data.
  public func boots(from: Int64 = 0, to: Int64 = .max) throws(StoreError) -> [Boot] {
    // The first and last times of a boot are stored when its blocks are merged.
    let sql = """
      WITH span AS (SELECT id AS boot, first, last, 0 AS recent FROM boot WHERE first IS NOT NULL
        UNION ALL SELECT boot, min(start), max("end"), 1 FROM recent GROUP BY boot)
      SELECT b.id, b.uuid, b.offset, b.synchronised, max(s.recent) FROM boot b JOIN span s ON s.boot = b.id
      GROUP BY b.id HAVING min(s.first) + b.offset <= ? AND max(s.last) + b.offset >= ? ORDER BY min(s.first) + b.offset
      """
    return try database.rows(sql, [.int(to), .int(from)]) { (row) throws(StoreError) in
      var boot = try boot(row)
      boot.hasRecent = row.bool(4)
      return boot
    }
  }

  /// All boots.
  public func allBoots() throws(StoreError) -> [Boot] {
    try database.rows("SELECT id, uuid, offset, synchronised FROM boot ORDER BY id", [], boot)
  }

  /// The wall-clock times (µs) of the oldest and the latest recorded values, or nil if there are none.
  public func span() throws(StoreError) -> ClosedRange<Int64>? {
    let sql = """
      SELECT min(s.first + b.offset), max(s.last + b.offset) FROM boot b JOIN (SELECT id AS boot, first, last FROM boot
        WHERE first IS NOT NULL UNION ALL SELECT boot, min(start), max("end") FROM recent GROUP BY boot) s ON s.boot = b.id
      """
    return try database.rows(sql) { (row) throws(StoreError) in
      row.isNull(0) ? nil : row.int(0)...max(row.int(0), row.int(1))
    }.first ?? nil
  }

  func boot(_ row: SQLRow) throws(StoreError) -> Boot {
    Boot(id: row.number(0), uuid: row.text(1), offset: row.int(2), isSynchronised: row.bool(3))
  }

  func deviceID(_ name: String) throws(StoreError) -> Int {
    let id = try database.number("SELECT id FROM device WHERE name = ?", [.text(name)])
    guard id > 0 else {
      let known = try devices()
      let remedy = known.isEmpty ? "no device has any yet" : "use one of \(known.joined(separator: ", "))"
      throw StoreError(.invalid, "device \"\(name)\" has no recorded values; \(remedy)")
    }
    return Int(id)
  }

  func series(_ id: Int) throws(StoreError) -> (device: Int, type: String) {
    let found = try database.rows("SELECT device, type FROM series WHERE id = ?", [.int(id)]) { (row) throws(StoreError) in
      (device: row.number(0), type: row.text(1))
    }
    guard let first = found.first else { throw StoreError(.invalid, "there is no series \(id)") }
    return first
  }

  /// The size of the data in bytes, excluding free pages and the log.
  public func size() throws(StoreError) -> Int {
    let pages = try database.number("PRAGMA page_count") - (try database.number("PRAGMA freelist_count"))
    return Int(pages * (try database.number("PRAGMA page_size")))
  }
}
