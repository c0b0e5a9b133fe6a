// Runs one SELECT on a private copy of an untrusted SQLite database. The statement can only read; the size of its result and its run
// time are limited. The copy itself is writable, because SQLite must roll back an interrupted transaction.
// Source: SQLite's documentation of its C interface, and "Defense Against The Dark Arts".

import CSQLiteDynamic
import Glibc
import Protocols
import ServiceRuntime

final class DatabaseCopy {
  private static let maxRows = 10_000
  private static let maxTextLength = 64 << 10
  /// The maximum total length of all strings in a result, in bytes.
  private static let maxText = 16 << 20
  /// The number of SQLite's virtual machine instructions between two checks of the deadline.
  private static let stepsBetweenChecks: CInt = 10_000

  private let sqlite: csqlite
  private var database: OpaquePointer?
  private let path: String
  private let timeout: Nanoseconds
  private let deadline: UnsafeMutablePointer<Instant>

  /// Opens a copy of the database at `path`; error messages name `path`.
  init(_ copy: String, of path: String, timeout: Nanoseconds) throws(ValueError) {
    var functions = csqlite()
    if let problem = csqlite_load(&functions) { throw ValueError("cannot read \(path): \(String(cString: problem))") }
    sqlite = functions
    self.path = path
    self.timeout = timeout
    deadline = .allocate(capacity: 1)
    deadline.initialize(to: Clock.monotonic() + timeout)
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW
    try check(sqlite.open_v2(copy, &database, flags, nil))
    for (limit, value) in [
      (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LENGTH, 4 << 20), (SQLITE_LIMIT_SQL_LENGTH, 1 << 20), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
      _ = sqlite.limit(database, limit, CInt(value))
    }
    sqlite.progress_handler(
      database, Self.stepsBetweenChecks,
      { context in context.map { Clock.monotonic() > $0.assumingMemoryBound(to: Instant.self).pointee } == true ? 1 : 0 }, deadline)
    for pragma in ["trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON"] {
      try check(sqlite.exec(database, "PRAGMA \(pragma)", nil, nil, nil))
    }
    _ = sqlite.set_authorizer(
      database,
      { _, action, first, _, _, _ in
        switch action {
        case SQLITE_SELECT, SQLITE_READ, SQLITE_FUNCTION, SQLITE_RECURSIVE: SQLITE_OK
        case SQLITE_PRAGMA: DatabaseCopy.matches(first, "table_info") ? SQLITE_OK : SQLITE_DENY
        // SQLite reports this action when it declares pragma_table_info itself. An UPDATE in the query is rejected by `prepare`.
        case SQLITE_UPDATE: DatabaseCopy.matches(first, "sqlite_master") ? SQLITE_OK : SQLITE_DENY
        default: SQLITE_DENY
        }
      }, nil)
  }

  private static func matches(_ name: UnsafePointer<CChar>?, _ known: String) -> Bool { name.map { String(cString: $0) } == known }

  deinit {
    _ = sqlite.close_v2(database)
    deadline.deallocate()
  }

  /// Runs the query and returns its rows. NULL is nil.
  func rows(_ query: DatabaseQuery) throws(ValueError) -> [[Value?]] {
    let statement = try prepare(query.sql)
    defer { _ = sqlite.finalize(statement) }
    guard sqlite.bind_parameter_count(statement) == query.arguments.count else {
      throw ValueError("the query to \(path) does not match its arguments")
    }
    for (index, argument) in query.arguments.enumerated() { try bind(argument, to: CInt(index + 1), of: statement) }
    var rows: [[Value?]] = []
    var text = 0
    while true {
      let code = sqlite.step(statement)
      if code == SQLITE_DONE { return rows }
      guard code == SQLITE_ROW else { throw error(code) }
      guard rows.count < Self.maxRows else { throw ValueError("\(path) has more than \(Self.maxRows) rows; export less data") }
      var row: [Value?] = []
      for column in 0..<sqlite.column_count(statement) { row.append(try value(column, of: statement, &text)) }
      rows.append(row)
    }
  }

  // MARK: The statement

  /// Prepares a statement, which must be a single SELECT.
  private func prepare(_ sql: String) throws(ValueError) -> OpaquePointer? {
    var statement: OpaquePointer?
    var isSingle = true
    let code = sql.withCString { start in
      var tail: UnsafePointer<CChar>?
      let code = sqlite.prepare_v2(database, start, -1, &statement, &tail)
      isSingle = tail.map { String(cString: $0).allSatisfy { $0.isWhitespace || $0 == ";" } } ?? true
      return code
    }
    try check(code)
    guard isSingle, statement != nil, sqlite.stmt_readonly(statement) != 0, sqlite.column_count(statement) > 0 else {
      _ = sqlite.finalize(statement)
      throw ValueError("the query to \(path) is not a single SELECT")
    }
    return statement
  }

  private func bind(_ value: Value, to index: CInt, of statement: OpaquePointer?) throws(ValueError) {
    switch value {
    case .bool(let value): try check(sqlite.bind_int64(statement, index, value ? 1 : 0))
    case .int(let value): try check(sqlite.bind_int64(statement, index, Int64(value)))
    case .float(let value): try check(sqlite.bind_double(statement, index, value))
    case .string(let value):
      // SQLITE_TRANSIENT, a macro that Swift does not import: SQLite copies the string.
      let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      let bytes = Array(value.utf8)
      let code = bytes.withUnsafeBytes {
        sqlite.bind_text(statement, index, $0.baseAddress?.assumingMemoryBound(to: CChar.self) ?? nil, CInt($0.count), copied)
      }
      try check(code)
    case .list: throw ValueError("a query to \(path) cannot have a list as argument")
    }
  }

  private func value(_ column: CInt, of statement: OpaquePointer?, _ text: inout Int) throws(ValueError) -> Value? {
    switch sqlite.column_type(statement, column) {
    case SQLITE_NULL: return nil
    case SQLITE_INTEGER: return .int(Int(sqlite.column_int64(statement, column)))
    case SQLITE_FLOAT: return .float(sqlite.column_double(statement, column))
    case let type:
      // The length must be read last: sqlite3_column_text may convert the string to UTF-8.
      let start =
        type == SQLITE_TEXT ? sqlite.column_text(statement, column).map(UnsafeRawPointer.init) : sqlite.column_blob(statement, column)
      let count = Int(sqlite.column_bytes(statement, column))
      text += count
      guard count <= Self.maxTextLength, text <= Self.maxText else {
        throw ValueError("\(path) has a string over \(Self.maxTextLength >> 10) KiB, or more than \(Self.maxText >> 20) MiB of text")
      }
      return .string(String(decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count), as: UTF8.self))
    }
  }

  // MARK: Errors

  private func check(_ code: CInt) throws(ValueError) {
    if code != SQLITE_OK { throw error(code) }
  }

  private func error(_ code: CInt) -> ValueError {
    switch code & 0xFF {
    case SQLITE_NOTADB: return ValueError("\(path) is not an SQLite database; put the exported database itself there, not an archive of it")
    case SQLITE_CORRUPT: return ValueError("\(path) is corrupt; export it again")
    case SQLITE_BUSY, SQLITE_LOCKED: return ValueError("\(path) is locked; put a finished export there")
    case SQLITE_INTERRUPT: return ValueError("\(path) took longer than \(timeout / .second) s; export less data")
    case SQLITE_TOOBIG: return ValueError("\(path) has a value that is too large")
    case SQLITE_FULL: return ValueError("cannot read \(path): no space left on device; free some space")
    case SQLITE_NOMEM: return ValueError("cannot read \(path): out of memory")
    default:
      let reason = (sqlite.errmsg(database) ?? sqlite.errstr(code)).map { printable(String(cString: $0)) } ?? "error \(code)"
      return ValueError("cannot read \(path): \(reason)")
    }
  }
}
