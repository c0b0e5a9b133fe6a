// A SQLite database with exclusive access, in a file that only its owner can read or in memory. A corrupt file, or one that was
// created by a different program, is never modified.
// Source: SQLite's C interface; its pragmas application_id, user_version, locking_mode and quick_check.

import CSQLite
import Glibc
import Protocols

/// An open database. It is not thread-safe.
struct SQLiteFile {
  /// The name of the database in error messages.
  private let name: String
  private let database: OpaquePointer

  /// Opens or creates a database file, or one in memory if `path` is nil. `schema` initializes a new database. Throws if the file has
  /// a different application id or schema version.
  init(_ path: String?, application: Int32, version: Int32, schema: String) throws(ValueError) {
    name = path ?? "the database"
    if let path { try Self.createFile(path) }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(path ?? ":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      throw ValueError("cannot open \(path ?? "memory"): \(String(cString: sqlite3_errstr(code)))")
    }
    database = opened
    do throws(ValueError) {
      try initialize(application, version, schema)
    } catch {
      sqlite3_close_v2(database)
      throw error
    }
  }

  func close() { sqlite3_close_v2(database) }

  /// Creates an empty file with mode 0600 unless it exists.
  private static func createFile(_ path: String) throws(ValueError) {
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw ValueError("cannot open \(path): \(String(cString: strerror(errno)))") }
    Glibc.close(file)
  }

  /// Checks the database, and creates the schema of a new one.
  private func initialize(_ application: Int32, _ version: Int32, _ schema: String) throws(ValueError) {
    try run("PRAGMA locking_mode = EXCLUSIVE")
    try run("PRAGMA trusted_schema = OFF")
    let (objects, foundApplication) = (try number("SELECT count(*) FROM sqlite_schema"), try number("PRAGMA application_id"))
    let isNew = objects == 0 && foundApplication == 0
    if !isNew {
      guard foundApplication == Int(application) else {
        throw ValueError("\(name) was created by a different program: choose another file")
      }
      guard try number("PRAGMA user_version") == Int(version) else {
        throw ValueError("\(name) was created by a different version of vehiclesim: choose another file")
      }
      let result = try rows("PRAGMA quick_check(1)").first?.first.flatMap { $0 }
      guard result == .string("ok") else { throw corrupt }
    }
    // No WAL: a single file can be copied and replaced, but a leftover WAL file would be applied to the replacement.
    try run("PRAGMA journal_mode = DELETE")
    try run("PRAGMA foreign_keys = ON")
    try run("BEGIN EXCLUSIVE")
    if isNew {
      try run(schema)
      try run("PRAGMA application_id = \(application)")
      try run("PRAGMA user_version = \(version)")
    }
    try run("COMMIT")
  }

  /// Runs statements that take no arguments and return no rows.
  func run(_ sql: String) throws(ValueError) {
    try check(sqlite3_exec(database, sql, nil, nil, nil))
  }

  /// Returns the rows of a statement, with NULL as nil. The arguments replace each `?`, in order.
  @discardableResult func rows(_ sql: String, _ arguments: [Value?] = []) throws(ValueError) -> [[Value?]] {
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    try check(sqlite3_prepare_v2(database, sql, -1, &statement, nil))
    for (index, argument) in arguments.enumerated() { try bind(argument, to: CInt(index + 1), of: statement) }
    var rows: [[Value?]] = []
    while true {
      let code = sqlite3_step(statement)
      if code == SQLITE_DONE { return rows }
      guard code == SQLITE_ROW else { throw error(code) }
      rows.append((0..<sqlite3_column_count(statement)).map { value($0, of: statement) })
    }
  }

  /// Returns the integer that a statement yields, or 0.
  private func number(_ sql: String) throws(ValueError) -> Int {
    if case .int(let number)?? = try rows(sql).first?.first { number } else { 0 }
  }

  /// The row id of the last insertion.
  var lastID: Int { Int(sqlite3_last_insert_rowid(database)) }

  private func bind(_ value: Value?, to index: CInt, of statement: OpaquePointer?) throws(ValueError) {
    switch value {
    case nil: try check(sqlite3_bind_null(statement, index))
    case .int(let value)?: try check(sqlite3_bind_int64(statement, index, Int64(value)))
    case .string(let value)?:
      // SQLITE_TRANSIENT, a macro that Swift does not import: SQLite copies the bytes.
      let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      let bytes = Array(value.utf8CString)
      try check(bytes.withUnsafeBufferPointer { sqlite3_bind_text(statement, index, $0.baseAddress, CInt($0.count - 1), copied) })
    case let other?: throw ValueError("cannot store \(other) in \(name): unsupported type")
    }
  }

  private func value(_ column: CInt, of statement: OpaquePointer?) -> Value? {
    switch sqlite3_column_type(statement, column) {
    case SQLITE_NULL: return nil
    case SQLITE_INTEGER: return .int(Int(sqlite3_column_int64(statement, column)))
    default:
      let start = sqlite3_column_text(statement, column)
      let count = Int(sqlite3_column_bytes(statement, column))
      return .string(String(decoding: UnsafeBufferPointer(start: start, count: start == nil ? 0 : count), as: UTF8.self))
    }
  }

  // MARK: Errors

  private var corrupt: ValueError { ValueError("\(name) is corrupt: restore a backup, or choose another file") }

  private func check(_ code: CInt) throws(ValueError) {
    if code != SQLITE_OK { throw error(code) }
  }

  private func error(_ code: CInt) -> ValueError {
    switch code & 0xFF {
    case SQLITE_NOTADB: ValueError("\(name) is not a SQLite database: choose another file")
    case SQLITE_CORRUPT: corrupt
    case SQLITE_BUSY, SQLITE_LOCKED: ValueError("\(name) is locked by another program: stop that program, or choose another file")
    case SQLITE_FULL: ValueError("cannot write \(name): disk full")
    default: ValueError("cannot use \(name): \(sqlite3_errmsg(database).map { String(cString: $0) } ?? "error \(code)")")
    }
  }
}
