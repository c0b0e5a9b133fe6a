// The send queue on the disk. It is used on one thread.

import Glibc
import SQLite

final class QueueStore {
  private static let format = Database.Format(
    application: 0x766D_7174 /* vmqt */, version: 2,
    schema: """
      CREATE TABLE event (id INTEGER PRIMARY KEY, created INTEGER NOT NULL, topic TEXT NOT NULL, payload BLOB NOT NULL) STRICT;
      CREATE TABLE batch (id INTEGER PRIMARY KEY, created INTEGER NOT NULL, topic TEXT NOT NULL, payload BLOB NOT NULL) STRICT;
      CREATE TABLE state (topic TEXT PRIMARY KEY, id INTEGER NOT NULL, created INTEGER NOT NULL, payload BLOB NOT NULL)
        STRICT, WITHOUT ROWID;
      CREATE TABLE retained (property TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
      CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      """, owner: "a send queue of vehicled")
  /// The tables of the messages that are kept in order.
  private static let tables = ["event", "batch"]
  /// The number of messages that are read at once.
  private static let chunk = 200
  /// The number of pages that are returned to the file system at once.
  private static let vacuumedPages = 512

  private let lock: StoreLock
  private let database: Database
  private let maxAge: Int64
  private let maxSize: Int
  /// Where a damaged file of an earlier run was moved, and why.
  private(set) var replaced: (path: String, cause: StoreError)?

  /// Opens the queue in a directory. Messages are kept for `maxAge` (µs) and up to `maxSize` bytes. A damaged file is moved away.
  init(directory: String, maxAge: Int64, maxSize: Int) throws(StoreError) {
    lock = try StoreLock(directory, program: "vehicled-mqtt")
    let path = directory + "/queue.db"
    (self.maxAge, self.maxSize) = (maxAge, maxSize)
    do throws(StoreError) {
      database = try Self.open(path)
    } catch {
      guard error.kind == .damaged else { throw error }
      // What SQLite keeps beside the file belongs to it.
      for suffix in ["", "-wal", "-shm"] { rename(path + suffix, path + ".damaged" + suffix) }
      replaced = (path + ".damaged", error)
      database = try Self.open(path)
    }
  }

  private static func open(_ path: String) throws(StoreError) -> Database {
    let database = try Database(
      path, format, writable: true,
      settings:
        "PRAGMA cache_size = -1000; PRAGMA wal_autocheckpoint = 500; PRAGMA journal_size_limit = 4194304; PRAGMA auto_vacuum = INCREMENTAL")
    // The first version was never released.
    guard try database.number("PRAGMA user_version") == 2 else { throw StoreError(.damaged, "\(path) has an outdated format") }
    _ = try contents(of: database)
    return database
  }

  /// What an earlier run has stored.
  func contents() throws(StoreError) -> SendQueue.Contents { try Self.contents(of: database) }

  private static func contents(of database: Database) throws(StoreError) -> SendQueue.Contents {
    let last = { (table: String) throws(StoreError) in try database.number("SELECT max(id) FROM \(table)") }
    let states = try database.rows("SELECT topic, id, created, payload FROM state") { (row) throws(StoreError) in
      var message = OutgoingMessage.state(row.text(0), "", isDurable: true)
      message.payload = row.blob(3)
      return QueuedMessage(id: row.int(1), created: row.int(2), message: message, isStored: true)
    }
    return SendQueue.Contents(
      states: states, hasEvents: try last("event") > 0, hasBatches: try last("batch") > 0,
      lastID: max(
        try last("event"), try last("batch"), try last("state"), try database.number("SELECT value FROM counter WHERE name = 'last'")))
  }

  /// The clocks at the last change.
  func mark() throws(StoreError) -> QueueClock.Mark { QueueClock.Mark(time: try number("time"), wall: try number("wall")) }

  /// A persistent number, 0 at first.
  private func number(_ name: String) throws(StoreError) -> Int64 {
    try database.number("SELECT value FROM counter WHERE name = ?", [.text(name)])
  }

  private func set(_ name: String, _ value: Int64) throws(StoreError) {
    try database.run(
      "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2", [.text(name), .int(value)])
  }

  /// The properties of which the broker retains a value.
  func retained() throws(StoreError) -> Set<String> {
    Set(try database.rows("SELECT property FROM retained") { (row) throws(StoreError) in row.text(0) })
  }

  /// Stores messages and removes acknowledged ones in one transaction, and stores the properties of which the broker retains a value if they
  /// have changed. Returns how many of the oldest messages were dropped, because of their age or the size of the queue.
  func update(
    store: [QueuedMessage], remove: [QueuedMessage], retained: Set<String>? = nil, at now: QueueClock.Mark
  ) throws(StoreError) -> Int {
    let dropped = try change(store: store, remove: remove, retained: retained, at: now)
    try shrink()
    return dropped
  }

  private func change(
    store: [QueuedMessage], remove: [QueuedMessage], retained: Set<String>?, at now: QueueClock.Mark
  ) throws(StoreError) -> Int {
    try database.transaction { () throws(StoreError) in
      if let retained {
        try database.run("DELETE FROM retained")
        for property in retained { try database.run("INSERT INTO retained (property) VALUES (?)", [.text(property)]) }
      }
      for entry in remove {
        switch entry.kind {
        // An older state of the topic may be stored instead, or a newer one since.
        case .state: try database.run("DELETE FROM state WHERE topic = ? AND id <= ?", [.text(entry.message.topic), .int(entry.id)])
        case .event: try database.run("DELETE FROM event WHERE id = ?", [.int(entry.id)])
        case .batch: try database.run("DELETE FROM batch WHERE id = ?", [.int(entry.id)])
        }
      }
      for entry in store { try insert(entry) }
      if let last = store.map(\.id).max() { try set("last", max(last, try number("last"))) }
      try set("time", now.time)
      try set("wall", now.wall)
      return store.isEmpty ? 0 : try dropOld(at: now.time)
    }
  }

  private func insert(_ entry: QueuedMessage) throws(StoreError) {
    let message = entry.message
    switch entry.kind {
    case .state:
      try database.run(
        """
        INSERT INTO state (topic, id, created, payload) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET id = ?2, created = ?3, payload = ?4
        """, [.text(message.topic), .int(entry.id), .int(entry.created), .blob(message.payload)])
    case .event, .batch:
      let table = entry.kind == .event ? "event" : "batch"
      try database.run(
        "INSERT INTO \(table) (id, created, topic, payload) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [.int(entry.id), .int(entry.created), .text(message.topic), .blob(message.payload)])
    }
  }

  private func dropOld(at now: Int64) throws(StoreError) -> Int {
    var dropped = 0
    for table in Self.tables {
      try database.run("DELETE FROM \(table) WHERE created < ?", [.int(now.subtractingReportingOverflow(maxAge).partialValue)])
      dropped += database.changes
    }
    while try size() > maxSize {
      let table = try first("event") < first("batch") ? "event" : "batch"
      try database.run("DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) ORDER BY id LIMIT \(Self.chunk))")
      if database.changes == 0 { break }
      dropped += database.changes
    }
    return dropped
  }

  private func first(_ table: String) throws(StoreError) -> Int64 {
    try database.number("SELECT coalesce(min(id), \(Int64.max)) FROM \(table)")
  }

  /// Returns unused pages to the file system after a backlog was sent, but not those that the next messages need.
  private func shrink() throws(StoreError) {
    guard try database.number("PRAGMA freelist_count") > 2 * Self.vacuumedPages else { return }
    try database.execute("PRAGMA incremental_vacuum(\(Self.vacuumedPages))")
  }

  /// The size of the data in bytes.
  func size() throws(StoreError) -> Int {
    let pages = try database.number("PRAGMA page_count") - (try database.number("PRAGMA freelist_count"))
    return Int(pages * (try database.number("PRAGMA page_size")))
  }

  /// The next messages of a lane, and whether there are no more.
  func messages(_ kind: QueuedMessage.Kind, _ request: MessageLane.Request) throws(StoreError) -> (entries: [QueuedMessage], isLast: Bool) {
    let excluded = request.excluding.isEmpty ? "" : " AND topic NOT IN (\(request.excluding.map { _ in "?" }.joined(separator: ", ")))"
    var (entries, size) = ([QueuedMessage](), 0)
    try database.forEachRow(
      "SELECT id, created, topic, payload FROM \(kind == .batch ? "batch" : "event") WHERE id > ?\(excluded) ORDER BY id",
      [.int(request.position)] + request.excluding.map { .text($0) }
    ) { (row) throws(StoreError) in
      entries.append(QueuedMessage(id: row.int(0), created: row.int(1), message: OutgoingMessage(row.text(2), row.blob(3)), isStored: true))
      size += entries.last?.size ?? 0
      return entries.count < Self.chunk && size < MessageLane.memoryLimit
    }
    return (entries, entries.count < Self.chunk && size < MessageLane.memoryLimit)
  }
}
