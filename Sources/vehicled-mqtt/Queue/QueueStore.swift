// The send queue on the disk. It is used on one thread.

import Glibc
import SQLite

final class QueueStore {
  private static let format = Database.Format(
    application: 0x766D_7174 /* vmqt */, version: 1,
    schema: """
      CREATE TABLE event (id INTEGER PRIMARY KEY, created INTEGER NOT NULL, topic TEXT NOT NULL, payload BLOB NOT NULL) STRICT;
      CREATE TABLE state (topic TEXT PRIMARY KEY, created INTEGER NOT NULL, expiry INTEGER, payload BLOB NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      """, owner: "a send queue of vehicled")
  /// The number of event messages that are read at once.
  private static let chunk = 200
  /// The number of pages that are returned to the file system at once.
  private static let vacuumedPages = 512

  private let lock: StoreLock
  private let database: Database
  private let maxAge: Int64
  private let maxSize: Int

  /// What the queue starts with.
  struct Contents: Sendable {
    var states: [QueuedMessage]
    var eventCount: Int
    var lastID: Int64
  }

  /// Opens the queue in a directory. Event messages are kept for `maxAge` (µs) and up to `maxSize` bytes.
  init(directory: String, maxAge: Int64, maxSize: Int) throws(StoreError) {
    lock = try StoreLock(directory, program: "vehicled-mqtt")
    database = try Database(
      directory + "/queue.db", Self.format, writable: true,
      settings:
        "PRAGMA cache_size = -1000; PRAGMA wal_autocheckpoint = 500; PRAGMA journal_size_limit = 4194304; PRAGMA auto_vacuum = INCREMENTAL")
    (self.maxAge, self.maxSize) = (maxAge, maxSize)
  }

  func contents() throws(StoreError) -> Contents {
    let states = try database.rows("SELECT topic, created, expiry, payload FROM state") { (row) throws(StoreError) in
      var entry = QueuedMessage(
        created: row.int(1),
        message: OutgoingMessage(row.text(0), row.blob(3), isRetained: true, expiry: row.isNull(2) ? nil : UInt32(clamping: row.int(2))))
      entry.isStored = true
      return entry
    }
    return Contents(
      states: states, eventCount: Int(try database.number("SELECT count(*) FROM event")),
      lastID: max(try database.number("SELECT max(id) FROM event"), try number("last")))
  }

  /// A persistent counter, 0 at first.
  func number(_ name: String) throws(StoreError) -> Int64 {
    try database.number("SELECT value FROM counter WHERE name = ?", [.text(name)])
  }

  func set(_ name: String, _ value: Int64) throws(StoreError) {
    try database.run(
      "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2", [.text(name), .int(value)])
  }

  /// Stores messages and removes acknowledged ones in one transaction. Returns how many of the oldest event messages were dropped, because
  /// of their age or the size of the queue.
  func update(store: [QueuedMessage], remove: [QueuedMessage], at now: Int64) throws(StoreError) -> Int {
    let dropped = try change(store: store, remove: remove, at: now)
    try shrink()
    return dropped
  }

  private func change(store: [QueuedMessage], remove: [QueuedMessage], at now: Int64) throws(StoreError) -> Int {
    try database.transaction { () throws(StoreError) in
      for entry in remove {
        if entry.id == 0 {
          // An older state of the topic may be stored instead, or a newer one since.
          try database.run("DELETE FROM state WHERE topic = ? AND created <= ?", [.text(entry.message.topic), .int(entry.created)])
        } else {
          try database.run("DELETE FROM event WHERE id = ?", [.int(entry.id)])
        }
      }
      for entry in store { try insert(entry) }
      if let last = store.last(where: { $0.id > 0 }) { try set("last", last.id) }
      return store.isEmpty ? 0 : try dropOld(at: now)
    }
  }

  private func insert(_ entry: QueuedMessage) throws(StoreError) {
    let message = entry.message
    if entry.id == 0 {
      try database.run(
        """
        INSERT INTO state (topic, created, expiry, payload) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET created = ?2, expiry = ?3, payload = ?4
        """,
        [.text(message.topic), .int(entry.created), message.expiry.map { .int(Int64($0)) } ?? .null, .blob(message.payload)])
    } else {
      try database.run(
        "INSERT INTO event (id, created, topic, payload) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [.int(entry.id), .int(entry.created), .text(message.topic), .blob(message.payload)])
    }
  }

  private func dropOld(at now: Int64) throws(StoreError) -> Int {
    try database.run("DELETE FROM event WHERE created < ?", [.int(now - maxAge)])
    var dropped = database.changes
    while try size() > maxSize {
      try database.run("DELETE FROM event WHERE id IN (SELECT id FROM event ORDER BY id LIMIT \(Self.chunk))")
      if database.changes == 0 { break }
      dropped += database.changes
    }
    return dropped
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

  /// The next event messages after this one, and how many remain after them.
  func events(after id: Int64) throws(StoreError) -> (entries: [QueuedMessage], rest: Int) {
    let entries = try database.rows(
      "SELECT id, created, topic, payload FROM event WHERE id > ? ORDER BY id LIMIT \(Self.chunk)", [.int(id)]
    ) { (row) throws(StoreError) in
      QueuedMessage(id: row.int(0), created: row.int(1), message: OutgoingMessage(row.text(2), row.blob(3)), isStored: true)
    }
    let rest = try database.number("SELECT count(*) FROM event WHERE id > ?", [.int(entries.last?.id ?? id)])
    return (entries, Int(rest))
  }
}
