// One connection to a SQLite database in WAL mode: statements, rows, transactions, errors. It is independent of the tables.
// Source: SQLite's documentation of its C interface and result codes.

import CSQLite
import Glibc

/// A value bound to a parameter of a statement.
public enum SQLValue {
  case null
  case int(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  public static func int(_ value: Int) -> SQLValue { .int(Int64(value)) }
  public static func bool(_ value: Bool) -> SQLValue { .int(value ? 1 : 0) }
  public static func real(_ value: Double?) -> SQLValue { value.map { .real($0) } ?? .null }
}

/// A row of a result, valid until the next row is read.
public struct SQLRow {
  fileprivate let statement: OpaquePointer

  public func int(_ column: CInt) -> Int64 { sqlite3_column_int64(statement, column) }
  public func number(_ column: CInt) -> Int { Int(int(column)) }
  public func bool(_ column: CInt) -> Bool { int(column) != 0 }
  public func isNull(_ column: CInt) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }
  public func real(_ column: CInt) -> Double? { isNull(column) ? nil : sqlite3_column_double(statement, column) }

  public func text(_ column: CInt) -> String { String(decoding: bytes(column), as: UTF8.self) }

  /// Appends the UTF-8 text of a column without its first byte.
  public func append(tailOf column: CInt, to bytes: inout [UInt8]) { bytes.append(contentsOf: self.bytes(column).dropFirst()) }

  public func blob(_ column: CInt) -> [UInt8] { Array(bytes(column)) }

  /// The bytes of a text or blob, valid until the next row is read. `sqlite3_column_text` would copy a text to append a zero byte.
  private func bytes(_ column: CInt) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(statement, column)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
  }
}

/// An open connection. It is not thread-safe.
public final class Database {
  public let path: String
  private let handle: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]
  private var depth = 0

  /// Configures SQLite once. This fails without consequences if the process has used it before.
  private static let configured = csqlite_disable_memory_statistics()

  /// What identifies the databases of one owner.
  public struct Format: Sendable {
    fileprivate let application: Int64
    fileprivate let version: Int64
    fileprivate let schema: String
    fileprivate let owner: String

    /// Describes a database. `application` is a number in its header, `version` that of the schema, `schema` creates its tables, and
    /// `owner` is what errors call it.
    public init(application: Int64, version: Int64, schema: String, owner: String) {
      (self.application, self.version, self.schema, self.owner) = (application, version, schema, owner)
    }
  }

  /// Opens a database. If `writable`, a missing one is created; its transactions are on the disk when they return. `settings` are further
  /// pragmas.
  public convenience init(_ path: String, _ format: Format, writable: Bool, settings: String) throws(StoreError) {
    try self.init(path, writable: writable)
    let isNew = try number("SELECT count(*) FROM sqlite_schema") == 0
    let application = try number("PRAGMA application_id")
    guard isNew && application == 0 || application == format.application else {
      throw StoreError(.foreign, "\(path) is not \(format.owner): application id \(application); choose another directory")
    }
    let version = try number("PRAGMA user_version")
    guard version <= format.version else {
      throw StoreError(
        .tooNew, "\(path) was written by a later version: schema \(version), this one supports \(format.version); upgrade")
    }
    // auto_vacuum has no effect once the journal mode has been written to the file.
    try execute("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; \(settings)")
    if writable { try execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL") }
    guard writable, isNew else { return }
    try transaction { () throws(StoreError) in
      try execute(format.schema)
      try execute("PRAGMA application_id = \(format.application); PRAGMA user_version = \(format.version)")
    }
  }

  private init(_ path: String, writable: Bool) throws(StoreError) {
    _ = Self.configured
    self.path = path
    var opened: OpaquePointer?
    let flags = (writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = Self.error(code, path, opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    sqlite3_extended_result_codes(handle, 1)
    sqlite3_busy_timeout(handle, 5000)
  }

  deinit {
    for statement in statements.values { sqlite3_finalize(statement) }
    sqlite3_close_v2(handle)
  }

  /// Runs statements that have no arguments and return no rows.
  public func execute(_ sql: String) throws(StoreError) {
    try check(sqlite3_exec(handle, sql, nil, nil, nil))
  }

  /// Runs a statement; the arguments replace the `?` placeholders in order.
  public func run(_ sql: String, _ arguments: [SQLValue] = []) throws(StoreError) {
    _ = try rows(sql, arguments) { (_) throws(StoreError) in }
  }

  /// Returns the result of `read` for each row.
  public func rows<Element>(
    _ sql: String, _ arguments: [SQLValue] = [], _ read: (SQLRow) throws(StoreError) -> Element
  ) throws(StoreError) -> [Element] {
    var elements: [Element] = []
    try forEachRow(sql, arguments) { (row) throws(StoreError) in
      elements.append(try read(row))
      return true
    }
    return elements
  }

  /// Calls `read` for each row until it returns false.
  public func forEachRow(
    _ sql: String, _ arguments: [SQLValue] = [], _ read: (SQLRow) throws(StoreError) -> Bool
  ) throws(StoreError) {
    let statement = try prepare(sql)
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, argument) in arguments.enumerated() { try check(bind(argument, to: CInt(index + 1), of: statement)) }
    while true {
      let code = sqlite3_step(statement)
      if code == SQLITE_DONE { return }
      guard code == SQLITE_ROW else { throw Self.error(code, path, handle) }
      guard try read(SQLRow(statement: statement)) else { return }
    }
  }

  /// Returns the integer in the first row, or 0.
  public func number(_ sql: String, _ arguments: [SQLValue] = []) throws(StoreError) -> Int64 {
    try rows(sql, arguments) { (row) throws(StoreError) in row.int(0) }.first ?? 0
  }

  /// Runs the body on one state of the database. Many statements are faster this way, because the database is locked only once.
  public func snapshot<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    if sqlite3_get_autocommit(handle) == 0 { return try body() }
    try execute("BEGIN")
    defer { sqlite3_exec(handle, "COMMIT", nil, nil, nil) }
    return try body()
  }

  /// Runs the body in one transaction, which is rolled back if the body throws. A nested call joins the outermost transaction.
  public func transaction<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    if depth > 0 { return try body() }
    try execute("BEGIN IMMEDIATE")
    depth += 1
    defer { depth -= 1 }
    do throws(StoreError) {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // SQLite itself rolls back after some errors.
      if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
      throw error
    }
  }

  public var isInTransaction: Bool { depth > 0 }
  public var lastID: Int { Int(sqlite3_last_insert_rowid(handle)) }
  /// The number of rows that the last statement changed.
  public var changes: Int { Int(sqlite3_changes64(handle)) }

  private func prepare(_ sql: String) throws(StoreError) -> OpaquePointer {
    if let statement = statements[sql] { return statement }
    var statement: OpaquePointer?
    try check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
    guard let statement else { throw StoreError(.failed, "cannot use \(path): empty statement") }
    statements[sql] = statement
    return statement
  }

  private func bind(_ value: SQLValue, to index: CInt, of statement: OpaquePointer) -> CInt {
    // SQLITE_TRANSIENT, a macro that Swift does not import: SQLite copies the bytes.
    let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch value {
    case .null: return sqlite3_bind_null(statement, index)
    case .int(let value): return sqlite3_bind_int64(statement, index, value)
    case .real(let value): return sqlite3_bind_double(statement, index, value)
    case .text(let value):
      var value = value
      return value.withUTF8 { utf8 in
        utf8.withMemoryRebound(to: CChar.self) { sqlite3_bind_text(statement, index, $0.baseAddress, CInt($0.count), copied) }
      }
    case .blob(let bytes):
      return bytes.withUnsafeBytes {
        $0.isEmpty
          ? sqlite3_bind_zeroblob(statement, index, 0) : sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), copied)
      }
    }
  }

  // MARK: Errors

  private func check(_ code: CInt) throws(StoreError) {
    if code != SQLITE_OK { throw Self.error(code, path, handle) }
  }

  private static func error(_ code: CInt, _ path: String, _ handle: OpaquePointer?) -> StoreError {
    let cause = handle.flatMap { sqlite3_system_errno($0) }.flatMap { $0 == 0 ? nil : String(cString: strerror($0)) }
    let message = handle.flatMap { sqlite3_errmsg($0) }.map { String(cString: $0) } ?? String(cString: sqlite3_errstr(code))
    let system = handle.map { sqlite3_system_errno($0) } ?? 0
    switch code & 0xFF {
    case SQLITE_FULL: return StoreError(.diskFull, "cannot write \(path): disk full; free some space, or lower the maximum size")
    case SQLITE_IOERR where system == ENOSPC:
      return StoreError(.diskFull, "cannot write \(path): disk full; free some space, or lower the maximum size")
    case SQLITE_READONLY:
      return StoreError(.readOnly, "cannot write \(path): read-only file or file system; make it writable")
    case SQLITE_IOERR where system == EROFS:
      return StoreError(.readOnly, "cannot write \(path): read-only file system; mount it writable")
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      return StoreError(.damaged, "\(path) is damaged: \(message); restore a backup, or move it away to start a new one")
    case SQLITE_CANTOPEN:
      return StoreError(.readOnly, "cannot open \(path): \(cause ?? message); check the directory and its permissions")
    default: return StoreError(.failed, "cannot use \(path): \(message)\(cause.map { " (\($0))" } ?? "")")
    }
  }
}
