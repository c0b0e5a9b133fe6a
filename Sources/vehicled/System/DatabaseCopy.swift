// One SELECT to a private copy of an SQLite database. What is in the file may be anybody's: the statement can only read, what it
// gives is bounded, and so is its time. The copy itself may be written, for that is how SQLite undoes an interrupted change.
// Facts: SQLite's C interface; its page on defence against hostile files.

import CSQLiteLater
import Glibc
import Protocols

final class DatabaseCopy {
  private static let maxRows = 10_000
  private static let maxTextLength = 64 << 10
  /// All texts together.
  private static let maxText = 16 << 20
  private static let stepsBetweenLooks: CInt = 10_000

  private var database: OpaquePointer?
  private let path: String
  private let timeout: Nanoseconds
  private let deadline: UnsafeMutablePointer<Instant>

  /// Opens a copy of the database at `path`, which stands in what is said of it.
  init(_ copy: String, of path: String, timeout: Nanoseconds) throws(ValueError) {
    if let trouble = csqlite_load() { throw ValueError("\(path) cannot be read: \(String(cString: trouble))") }
    self.path = path
    self.timeout = timeout
    deadline = .allocate(capacity: 1)
    deadline.initialize(to: Clock.monotonic() + timeout)
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW
    try check(sqlite3_open_v2(copy, &database, flags, nil))
    for (limit, value) in [
      (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LENGTH, 4 << 20), (SQLITE_LIMIT_SQL_LENGTH, 1 << 20), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
      sqlite3_limit(database, limit, CInt(value))
    }
    sqlite3_progress_handler(
      database, Self.stepsBetweenLooks,
      { context in context.map { Clock.monotonic() > $0.assumingMemoryBound(to: Instant.self).pointee } == true ? 1 : 0 }, deadline)
    for pragma in ["trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON"] {
      try check(sqlite3_exec(database, "PRAGMA \(pragma)", nil, nil, nil))
    }
    sqlite3_set_authorizer(
      database,
      { _, action, first, _, _, _ in
        switch action {
        case SQLITE_SELECT, SQLITE_READ, SQLITE_FUNCTION, SQLITE_RECURSIVE: SQLITE_OK
        case SQLITE_PRAGMA: DatabaseCopy.is(first, "table_info") ? SQLITE_OK : SQLITE_DENY
        // Part of how SQLite declares pragma_table_info; a statement that says so itself is none that only reads.
        case SQLITE_UPDATE: DatabaseCopy.is(first, "sqlite_master") ? SQLITE_OK : SQLITE_DENY
        default: SQLITE_DENY
        }
      }, nil)
  }

  private static func `is`(_ name: UnsafePointer<CChar>?, _ known: String) -> Bool { name.map { String(cString: $0) } == known }

  deinit {
    sqlite3_close_v2(database)
    deadline.deallocate()
  }

  /// The rows, NULL as nil.
  func rows(_ query: DatabaseQuery) throws(ValueError) -> [[Value?]] {
    let statement = try prepare(query.sql)
    defer { sqlite3_finalize(statement) }
    guard sqlite3_bind_parameter_count(statement) == query.arguments.count else {
      throw ValueError("the question to \(path) has other arguments than were given")
    }
    for (index, argument) in query.arguments.enumerated() { try bind(argument, to: CInt(index + 1), of: statement) }
    var rows: [[Value?]] = []
    var text = 0
    while true {
      let code = sqlite3_step(statement)
      if code == SQLITE_DONE { return rows }
      guard code == SQLITE_ROW else { throw error(code) }
      guard rows.count < Self.maxRows else { throw ValueError("\(path) holds more than the \(Self.maxRows) rows that are read") }
      var row: [Value?] = []
      for column in 0..<sqlite3_column_count(statement) { row.append(try value(column, of: statement, &text)) }
      rows.append(row)
    }
  }

  // MARK: The statement

  private func prepare(_ sql: String) throws(ValueError) -> OpaquePointer? {
    var statement: OpaquePointer?
    var isAlone = true
    let code = sql.withCString { start in
      var tail: UnsafePointer<CChar>?
      let code = sqlite3_prepare_v2(database, start, -1, &statement, &tail)
      isAlone = tail.map { String(cString: $0).allSatisfy { $0.isWhitespace || $0 == ";" } } ?? true
      return code
    }
    try check(code)
    guard isAlone, statement != nil, sqlite3_stmt_readonly(statement) != 0, sqlite3_column_count(statement) > 0 else {
      sqlite3_finalize(statement)
      throw ValueError("a question to \(path) is one SELECT and nothing else")
    }
    return statement
  }

  private func bind(_ value: Value, to index: CInt, of statement: OpaquePointer?) throws(ValueError) {
    switch value {
    case .bool(let value): try check(sqlite3_bind_int64(statement, index, value ? 1 : 0))
    case .int(let value): try check(sqlite3_bind_int64(statement, index, Int64(value)))
    case .float(let value): try check(sqlite3_bind_double(statement, index, value))
    case .string(let value):
      // SQLite copies it (SQLITE_TRANSIENT, a macro that Swift does not see).
      let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      let bytes = Array(value.utf8)
      let code = bytes.withUnsafeBytes {
        sqlite3_bind_text(statement, index, $0.baseAddress?.assumingMemoryBound(to: CChar.self) ?? nil, CInt($0.count), copied)
      }
      try check(code)
    case .list: throw ValueError("a list is no argument of a question to \(path)")
    }
  }

  private func value(_ column: CInt, of statement: OpaquePointer?, _ text: inout Int) throws(ValueError) -> Value? {
    switch sqlite3_column_type(statement, column) {
    case SQLITE_NULL: return nil
    case SQLITE_INTEGER: return .int(Int(sqlite3_column_int64(statement, column)))
    case SQLITE_FLOAT: return .float(sqlite3_column_double(statement, column))
    case let type:
      // Asked in this order, a text is in UTF-8 whatever the file has.
      let start =
        type == SQLITE_TEXT ? sqlite3_column_text(statement, column).map(UnsafeRawPointer.init) : sqlite3_column_blob(statement, column)
      let count = Int(sqlite3_column_bytes(statement, column))
      text += count
      guard count <= Self.maxTextLength, text <= Self.maxText else {
        throw ValueError("\(path) holds a text that is longer than the \(Self.maxTextLength >> 10) KiB that are read")
      }
      return .string(String(decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count), as: UTF8.self))
    }
  }

  // MARK: What goes wrong

  private func check(_ code: CInt) throws(ValueError) {
    if code != SQLITE_OK { throw error(code) }
  }

  private func error(_ code: CInt) -> ValueError {
    switch code & 0xFF {
    case SQLITE_NOTADB: return ValueError("\(path) is no SQLite database: put the exported database itself there, not an archive of it")
    case SQLITE_CORRUPT: return ValueError("\(path) is damaged: export it again")
    case SQLITE_BUSY, SQLITE_LOCKED: return ValueError("\(path) is locked: put a finished export there")
    case SQLITE_INTERRUPT: return ValueError("\(path) took longer than \(timeout / .second) s: export less")
    case SQLITE_TOOBIG: return ValueError("\(path) holds something that is larger than is read")
    case SQLITE_FULL: return ValueError("there is no space left to read \(path): free some")
    case SQLITE_NOMEM: return ValueError("there is no memory left to read \(path)")
    default:
      let words = (sqlite3_errmsg(database) ?? sqlite3_errstr(code)).map { printable(String(cString: $0)) } ?? "error \(code)"
      return ValueError("\(path) cannot be read: \(words)")
    }
  }
}
