// One SQLite database that is ours alone: a file that only its owner can read, or memory. It must never touch a file that
// another program made, nor one that is damaged.
// Facts: SQLite's C interface; its pragmas application_id, user_version, locking_mode and quick_check.

import CSQLite
import Glibc
import Protocols

/// An open database. It is used by one at a time.
struct SQLiteFile {
  /// What it is called in what is said of it.
  private let name: String
  private let database: OpaquePointer

  /// Opens the file, which is made where there is none; without a path, memory. `schema` is what a new one begins with; a file that
  /// has another application id or another version of the schema is refused.
  init(_ path: String?, application: Int32, version: Int32, schema: String) throws(ValueError) {
    name = path ?? "the database"
    if let path { try Self.make(path) }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(path ?? ":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
    guard code == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      throw ValueError("\(path ?? "memory") cannot be opened: \(String(cString: sqlite3_errstr(code)))")
    }
    database = opened
    do throws(ValueError) {
      try begin(application, version, schema)
    } catch {
      sqlite3_close_v2(database)
      throw error
    }
  }

  func close() { sqlite3_close_v2(database) }

  /// An empty file for its owner alone, where there is nothing.
  private static func make(_ path: String) throws(ValueError) {
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw ValueError("\(path) cannot be opened: \(String(cString: strerror(errno)))") }
    Glibc.close(file)
  }

  private func begin(_ application: Int32, _ version: Int32, _ schema: String) throws(ValueError) {
    try run("PRAGMA locking_mode = EXCLUSIVE")
    try run("PRAGMA trusted_schema = OFF")
    let (objects, owner) = (try number("SELECT count(*) FROM sqlite_schema"), try number("PRAGMA application_id"))
    let isNew = objects == 0 && owner == 0
    if !isNew {
      guard owner == Int(application) else {
        throw ValueError("\(name) is the database of another program: name another file")
      }
      guard try number("PRAGMA user_version") == Int(version) else {
        throw ValueError("\(name) was made by another version of vehiclesim: name another file")
      }
      let verdict = try rows("PRAGMA quick_check(1)").first?.first.flatMap { $0 }
      guard verdict == .string("ok") else { throw damaged }
    }
    // One file is all there is to copy or to replace; a WAL beside it would be read over what replaced it.
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

  /// Statements without arguments and rows.
  func run(_ sql: String) throws(ValueError) {
    try check(sqlite3_exec(database, sql, nil, nil, nil))
  }

  /// The rows of a statement, NULL as nil; `?` stands for the arguments, in order.
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

  /// The whole number that a statement gives, or 0.
  private func number(_ sql: String) throws(ValueError) -> Int {
    if case .int(let number)?? = try rows(sql).first?.first { number } else { 0 }
  }

  /// The id that the last insertion gave.
  var lastID: Int { Int(sqlite3_last_insert_rowid(database)) }

  private func bind(_ value: Value?, to index: CInt, of statement: OpaquePointer?) throws(ValueError) {
    switch value {
    case nil: try check(sqlite3_bind_null(statement, index))
    case .int(let value)?: try check(sqlite3_bind_int64(statement, index, Int64(value)))
    case .string(let value)?:
      // SQLite copies it (SQLITE_TRANSIENT, a macro that Swift does not see).
      let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      let bytes = Array(value.utf8CString)
      try check(bytes.withUnsafeBufferPointer { sqlite3_bind_text(statement, index, $0.baseAddress, CInt($0.count - 1), copied) })
    case let other?: throw ValueError("\(name) keeps no such value: \(other)")
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

  // MARK: What goes wrong

  private var damaged: ValueError { ValueError("\(name) is damaged: put a copy of it back, or name another file") }

  private func check(_ code: CInt) throws(ValueError) {
    if code != SQLITE_OK { throw error(code) }
  }

  private func error(_ code: CInt) -> ValueError {
    switch code & 0xFF {
    case SQLITE_NOTADB: ValueError("\(name) is no SQLite database: name another file")
    case SQLITE_CORRUPT: damaged
    case SQLITE_BUSY, SQLITE_LOCKED: ValueError("\(name) is in use by another program: end that, or name another file")
    case SQLITE_FULL: ValueError("there is no space left for \(name): free some")
    default: ValueError("\(name) fails: \(sqlite3_errmsg(database).map { String(cString: $0) } ?? "error \(code)")")
    }
  }
}
