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
      CREATE TABLE topic (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
      CREATE TABLE retained (property TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
      CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      """, owner: "a send queue of vehicled")
  /// The tables of the messages that are kept in order.
  private static let tables = ["event", "batch"]
  /// The number of messages that are read at once.
  private static let chunk = 200
  /// The number of the oldest messages that are dropped at once.
  private static let droppedAtOnce = 10
  /// The number of pages that are returned to the file system at once.
  private static let vacuumedPages = 512
  /// The highest number or time that the queue can have written.
  private static let highest: Int64 = 1 << 60

  /// What an earlier run has stored.
  struct Contents {
    var queue = SendQueue.Contents()
    var mark = QueueClock.Mark(time: 0, wall: 0)
    /// The topics on which the broker retains something of this bridge.
    var topics: Set<String> = []
    /// The properties of which it retains a value.
    var retained: Set<String> = []
  }

  /// Changes that are stored together.
  struct Update: Sendable {
    var store: [QueuedMessage] = []
    var remove: [QueuedMessage] = []
    /// New topics (true), and those on which nothing is retained any more.
    var topics: [String: Bool] = [:]
    /// All properties of which the broker retains a value, if they have changed.
    var retained: Set<String>?

    var isEmpty: Bool { store.isEmpty && remove.isEmpty && topics.isEmpty && retained == nil }
  }

  private let lock: StoreLock
  private let path: String
  private var database: Database?
  private let maxAge: Int64
  private let maxSize: Int
  /// What the damaged file of an earlier run was replaced because of.
  private(set) var damage: StoreError?

  /// Where a damaged file is moved.
  var damagedPath: String { path + ".damaged" }

  /// Opens the queue in a directory. Messages are kept for `maxAge` (µs) and up to `maxSize` bytes. A damaged file is moved away.
  init(directory: String, maxAge: Int64, maxSize: Int) throws(StoreError) {
    lock = try StoreLock(directory, program: "vehicled-mqtt")
    path = directory + "/queue.db"
    (self.maxAge, self.maxSize) = (maxAge, maxSize)
    do throws(StoreError) {
      database = try Self.open(path)
      _ = try contents()
    } catch {
      guard error.kind == .damaged else { throw error }
      damage = error
      try replace()
    }
  }

  private static func open(_ path: String) throws(StoreError) -> Database {
    let database = try Database(
      path, format, writable: true,
      settings:
        "PRAGMA cache_size = -1000; PRAGMA wal_autocheckpoint = 500; PRAGMA journal_size_limit = 4194304; PRAGMA auto_vacuum = INCREMENTAL")
    // The first version was never released.
    guard try database.number("PRAGMA user_version") == 2 else { throw StoreError(.damaged, "\(path) has an outdated format") }
    return database
  }

  /// Moves a damaged file away, and begins a new one.
  func replace() throws(StoreError) {
    database = nil
    // What SQLite keeps beside the file belongs to it.
    for suffix in ["", "-wal", "-shm"] { rename(path + suffix, damagedPath + suffix) }
    database = try Self.open(path)
  }

  /// The open database.
  private func opened() throws(StoreError) -> Database {
    if let database { return database }
    let database = try Self.open(path)
    self.database = database
    return database
  }

  func contents() throws(StoreError) -> Contents {
    let database = try opened()
    let number = { (sql: String) throws(StoreError) in
      let number = try database.number(sql)
      guard (0...Self.highest).contains(number) else { throw StoreError(.damaged, "\(self.path) is damaged: \(sql) is \(number)") }
      return number
    }
    let names = { (table: String) throws(StoreError) in
      try database.rows("SELECT * FROM \(table)") { (row) throws(StoreError) in row.text(0) }
    }
    let states = try database.rows("SELECT topic, id, created, payload FROM state") { (row) throws(StoreError) in
      var message = OutgoingMessage.state(row.text(0), "", isDurable: true)
      message.payload = row.blob(3)
      return QueuedMessage(id: row.int(1), created: row.int(2), message: message, isStored: true)
    }
    let last = ["event", "batch", "state"].map { "SELECT max(id) FROM \($0)" } + ["SELECT value FROM counter WHERE name = 'last'"]
    var contents = Contents(topics: Set(try names("topic")), retained: Set(try names("retained")))
    contents.queue = SendQueue.Contents(states: states, hasEvents: try number(last[0]) > 0, hasBatches: try number(last[1]) > 0)
    for sql in last { contents.queue.lastID = max(contents.queue.lastID, try number(sql)) }
    contents.mark.time = try number("SELECT value FROM counter WHERE name = 'time'")
    contents.mark.wall = try database.number("SELECT value FROM counter WHERE name = 'wall'")
    return contents
  }

  /// Makes changes in one transaction. Returns how many of the oldest messages were dropped, because of their age or the size of the queue.
  func apply(_ update: Update, at now: QueueClock.Mark) throws(StoreError) -> Int {
    let database = try opened()
    let dropped = try database.transaction { () throws(StoreError) in
      for (topic, isUsed) in update.topics {
        try database.run(
          isUsed ? "INSERT INTO topic (name) VALUES (?) ON CONFLICT DO NOTHING" : "DELETE FROM topic WHERE name = ?", [.text(topic)])
      }
      if let retained = update.retained {
        try database.run("DELETE FROM retained")
        for property in retained { try database.run("INSERT INTO retained (property) VALUES (?)", [.text(property)]) }
      }
      for entry in update.remove { try remove(entry, from: database) }
      for entry in update.store { try insert(entry, into: database) }
      try set("time", now.time, in: database)
      try set("wall", now.wall, in: database)
      if let last = update.store.map(\.id).max() { try set("last", last, in: database) }
      return update.store.isEmpty ? 0 : try dropOld(from: database, at: now.time)
    }
    try shrink(database)
    return dropped
  }

  private func set(_ name: String, _ value: Int64, in database: Database) throws(StoreError) {
    try database.run(
      "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2", [.text(name), .int(value)])
  }

  private func remove(_ entry: QueuedMessage, from database: Database) throws(StoreError) {
    switch entry.kind {
    // An older state of the topic may be stored instead, or a newer one since.
    case .state: try database.run("DELETE FROM state WHERE topic = ? AND id <= ?", [.text(entry.message.topic), .int(entry.id)])
    case .event: try database.run("DELETE FROM event WHERE id = ?", [.int(entry.id)])
    case .batch: try database.run("DELETE FROM batch WHERE id = ?", [.int(entry.id)])
    }
  }

  private func insert(_ entry: QueuedMessage, into database: Database) throws(StoreError) {
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

  private func dropOld(from database: Database, at now: Int64) throws(StoreError) -> Int {
    var dropped = 0
    for table in Self.tables {
      // Times increase with the numbers, so that only the oldest messages have to be read.
      let limit = now.subtractingReportingOverflow(maxAge).partialValue
      let first = try database.number("SELECT id FROM \(table) WHERE created >= ? ORDER BY id LIMIT 1", [.int(limit)])
      try database.run("DELETE FROM \(table) WHERE id < ?", [.int(first > 0 ? first : .max)])
      dropped += database.changes
    }
    while try size() > maxSize {
      let first = { (table: String) throws(StoreError) in
        try database.number("SELECT coalesce(min(id), \(Int64.max)) FROM \(table)")
      }
      let table = try first("event") < first("batch") ? "event" : "batch"
      try database.run("DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) ORDER BY id LIMIT \(Self.droppedAtOnce))")
      if database.changes == 0 { break }
      dropped += database.changes
    }
    return dropped
  }

  /// Returns unused pages to the file system after a backlog was sent, but not those that the next messages need.
  private func shrink(_ database: Database) throws(StoreError) {
    guard try database.number("PRAGMA freelist_count") > 2 * Self.vacuumedPages else { return }
    try database.execute("PRAGMA incremental_vacuum(\(Self.vacuumedPages))")
  }

  /// The size of the data in bytes.
  func size() throws(StoreError) -> Int {
    let database = try opened()
    let pages = try database.number("PRAGMA page_count") - (try database.number("PRAGMA freelist_count"))
    return Int(pages * (try database.number("PRAGMA page_size")))
  }

  /// The next messages of a lane, and whether there are no more.
  func messages(_ kind: QueuedMessage.Kind, _ request: MessageLane.Request) throws(StoreError) -> (entries: [QueuedMessage], isLast: Bool) {
    let excluded = request.excluding.isEmpty ? "" : " AND topic NOT IN (\(request.excluding.map { _ in "?" }.joined(separator: ", ")))"
    var (entries, size) = ([QueuedMessage](), 0)
    var hasRoom: Bool { entries.count < Self.chunk && size < MessageLane.memoryLimit / 2 }
    try opened().forEachRow(
      "SELECT id, created, topic, payload FROM \(kind == .batch ? "batch" : "event") WHERE id > ?\(excluded) ORDER BY id",
      [.int(request.position)] + request.excluding.map { .text($0) }
    ) { (row) throws(StoreError) in
      let entry = QueuedMessage(id: row.int(0), created: row.int(1), message: OutgoingMessage(row.text(2), row.blob(3)), isStored: true)
      entries.append(entry)
      size += entry.size
      return hasRoom
    }
    return (entries, hasRoom)
  }
}
