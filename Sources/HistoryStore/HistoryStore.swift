// The writer of the store: opens the directory, and appends blocks. Merging, dropping and deleting are in extensions.

import Glibc
import Protocols
import SQLite
import SampleBlocks

/// The recorded values of all devices, in a directory that only one process writes to. It is not thread-safe.
public final class HistoryStore {
  /// Queries on the writer's connection.
  public let reader: HistoryReader
  let database: Database
  private let directory: String
  private let lock: StoreLock
  /// Cached IDs of series and devices.
  private var seriesIDs: [SeriesKey: Int] = [:]
  private var deviceIDs: [String: Int] = [:]

  /// Opens the store in a directory. A missing store or directory is created.
  public init(directory: String) throws(StoreError) {
    self.directory = directory
    lock = try StoreLock(directory, program: "vehicled-history")
    database = try HistoryFile.open(directory, writable: true)
    reader = HistoryReader(database)
    HistoryFile.makeReserve(directory)
  }

  // MARK: Series and boots

  /// Returns the ID of a series, and creates the series if it is new.
  public func series(_ key: SeriesKey) throws(StoreError) -> Int {
    if let id = seriesIDs[key] { return id }
    let device = try device(key.device)
    let arguments: [SQLValue] = [.int(device), .text(key.property), .text(key.type.rawValue), .text(key.unit ?? "")]
    try performWrite { () throws(StoreError) in
      try database.run("INSERT INTO series (device, property, type, unit) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", arguments)
    }
    let id = Int(
      try database.number("SELECT id FROM series WHERE device = ? AND property = ? AND type = ? AND unit = ?", arguments))
    seriesIDs[key] = id
    return id
  }

  /// Returns the IDs of several series. New ones are created in one transaction.
  public func series(_ keys: [SeriesKey]) throws(StoreError) -> [Int] {
    let known = keys.compactMap { seriesIDs[$0] }
    guard known.count < keys.count else { return known }
    var ids: [Int] = []
    do throws(StoreError) {
      try performWrite { () throws(StoreError) in
        ids = []
        for key in keys { ids.append(try series(key)) }
      }
    } catch {
      // What was created has been rolled back.
      forgetNames()
      throw error
    }
    return ids
  }

  /// Returns the ID of a device, and creates the device if it is new.
  func device(_ name: String) throws(StoreError) -> Int {
    if let id = deviceIDs[name] { return id }
    try performWrite { () throws(StoreError) in
      try database.run("INSERT INTO device (name) VALUES (?) ON CONFLICT DO NOTHING", [.text(name)])
    }
    let id = try reader.deviceID(name)
    deviceIDs[name] = id
    return id
  }

  /// Clears the cached IDs after a change.
  func forgetNames() { (seriesIDs, deviceIDs) = ([:], [:]) }

  /// Returns the ID of a boot. A new boot is created with this offset (µs from CLOCK_BOOTTIME to CLOCK_REALTIME).
  public func boot(_ uuid: String, offset: Int64) throws(StoreError) -> Int {
    try performWrite { () throws(StoreError) in
      try database.run(
        "INSERT INTO boot (uuid, offset, synchronised) VALUES (?, ?, 0) ON CONFLICT DO NOTHING", [.text(uuid), .int(offset)])
    }
    return Int(try database.number("SELECT id FROM boot WHERE uuid = ?", [.text(uuid)]))
  }

  /// Sets the offset of a boot, unless it was already set from a synchronised clock. Returns whether it changed.
  @discardableResult
  public func setOffset(_ offset: Int64, synchronised: Bool, ofBoot boot: Int) throws(StoreError) -> Bool {
    try database.run(
      "UPDATE boot SET offset = ?1, synchronised = ?2 WHERE id = ?3 AND synchronised = 0 AND (offset <> ?1 OR ?2)",
      [.int(offset), .bool(synchronised), .int(boot)])
    return database.changes > 0
  }

  // MARK: Appending

  /// Appends a block, which is on the disk when this returns. If the disk is full, drops the oldest merged blocks. Returns the number of
  /// dropped blocks.
  @discardableResult
  public func append(_ block: NewBlock) throws(StoreError) -> Int {
    let device = try device(block.device)
    return try performWrite { () throws(StoreError) in
      try database.run(
        "INSERT INTO recent (device, boot, start, \"end\", continues, data) VALUES (?, ?, ?, ?, ?, ?)",
        [.int(device), .int(block.boot), .int(block.start), .int(block.end), .bool(block.continues), .blob(block.bytes)])
    }
  }

  /// Runs a change in a transaction. If the disk is full, drops the oldest merged blocks and tries again. Returns the number of dropped
  /// blocks.
  @discardableResult
  func performWrite(_ body: () throws(StoreError) -> Void) throws(StoreError) -> Int {
    if database.isInTransaction {
      // The outermost call repeats the change as a whole.
      try body()
      return 0
    }
    var dropped = 0
    while true {
      do throws(StoreError) {
        try database.transaction(body)
        return dropped
      } catch {
        guard error.kind == .diskFull, dropped < 1000 else { throw error }
        HistoryFile.releaseReserve(directory)
        let count = try dropOldest(4)
        if count == 0 { throw error }
        dropped += count
        // Write the log back into the freed pages.
        try? checkpoint()
      }
    }
  }

  /// Writes the log back into the database, and truncates it.
  public func checkpoint() throws(StoreError) {
    try database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    HistoryFile.makeReserve(directory)
  }

  /// Returns unused space to the file system. This rewrites the file, which requires as much free space as there is data.
  public func shrink() throws(StoreError) {
    try database.run("VACUUM")
    try checkpoint()
  }
}
