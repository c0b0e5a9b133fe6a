// The directory of the store: its lock, the reserve for a full disk, and the schema of the database.

import CLinux
import Glibc

enum HistoryFile {
  static let name = "history.db"
  /// "vhis", in the header of the database.
  private static let application: Int64 = 0x7668_6973
  private static let version: Int64 = 1

  /// Times of blocks and periods are microseconds of CLOCK_BOOTTIME in a boot; add `boot.offset` for the wall-clock time. `recent` contains
  /// blocks of a few seconds, and has no index, so that a commit writes few pages; `block` contains merged blocks. `imported` records which
  /// blocks of a source were imported.
  private static let schema = """
    CREATE TABLE device (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE series (id INTEGER PRIMARY KEY AUTOINCREMENT, device INTEGER NOT NULL REFERENCES device, property TEXT NOT NULL,
      type TEXT NOT NULL, unit TEXT NOT NULL, UNIQUE (device, property, type, unit)) STRICT;
    CREATE TABLE boot (id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE, offset INTEGER NOT NULL,
      synchronised INTEGER NOT NULL, first INTEGER, last INTEGER) STRICT;
    CREATE TABLE recent (id INTEGER PRIMARY KEY, device INTEGER NOT NULL, boot INTEGER NOT NULL, start INTEGER NOT NULL,
      "end" INTEGER NOT NULL, continues INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
    CREATE TABLE block (id INTEGER PRIMARY KEY, device INTEGER NOT NULL, boot INTEGER NOT NULL, start INTEGER NOT NULL,
      "end" INTEGER NOT NULL, continues INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
    CREATE INDEX block_time ON block (device, boot, start, "end", continues);
    CREATE TABLE rollup (resolution INTEGER NOT NULL, boot INTEGER NOT NULL, start INTEGER NOT NULL, series INTEGER NOT NULL,
      data BLOB NOT NULL, PRIMARY KEY (resolution, boot, start, series)) STRICT, WITHOUT ROWID;
    CREATE TABLE period (id INTEGER PRIMARY KEY AUTOINCREMENT, device INTEGER NOT NULL REFERENCES device, kind TEXT NOT NULL,
      start_boot INTEGER NOT NULL REFERENCES boot, start INTEGER NOT NULL, end_boot INTEGER NOT NULL REFERENCES boot,
      "end" INTEGER NOT NULL, zone TEXT NOT NULL, open INTEGER NOT NULL, frozen INTEGER NOT NULL, summary_start INTEGER NOT NULL,
      summary TEXT NOT NULL, details TEXT NOT NULL) STRICT;
    CREATE INDEX period_time ON period (kind, device, start_boot, start, end_boot, "end");
    CREATE TABLE imported (device INTEGER NOT NULL, boot INTEGER NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
      PRIMARY KEY (device, boot, start, "end")) STRICT, WITHOUT ROWID;
    """

  /// Opens the database in a directory. A new database is initialised.
  static func open(_ directory: String, writable: Bool) throws(HistoryError) -> Database {
    let path = directory + "/" + name
    let database = try Database(path, writable: writable)
    let isNew = try database.number("SELECT count(*) FROM sqlite_schema") == 0
    let application = try database.number("PRAGMA application_id")
    guard isNew && application == 0 || application == Self.application else {
      throw HistoryError(.damaged, "\(path) is not a history of vehicled: application id \(application); choose another directory")
    }
    let version = try database.number("PRAGMA user_version")
    guard version <= Self.version else {
      throw HistoryError(.tooNew, "\(path) was written by a later version: schema \(version), this one supports \(Self.version); upgrade")
    }
    try database.execute("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA cache_size = -4000")
    guard writable else { return database }
    // Power can fail at any time, so each commit is on the disk when it returns. The log is checkpointed after about an hour of driving.
    try database.execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608")
    if isNew {
      try database.transaction { () throws(HistoryError) in
        try database.execute(schema)
        try database.execute("PRAGMA application_id = \(Self.application); PRAGMA user_version = \(Self.version)")
      }
    }
    return database
  }

  /// Creates the directory if it does not exist, and locks it. The lock lasts until the descriptor is closed.
  static func lock(_ directory: String) throws(HistoryError) -> CInt {
    if mkdir(directory, 0o700) < 0, errno != EEXIST { throw failure("create", directory) }
    let path = directory + "/lock"
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("write", path) }
    if flock(descriptor, LOCK_EX | LOCK_NB) < 0 {
      let code = errno
      close(descriptor)
      guard code == EWOULDBLOCK else { throw HistoryError(.failed, "cannot lock \(path): \(String(cString: strerror(code)))") }
      throw HistoryError(.inUse, "cannot open \(directory): in use by another vehicled-history; stop it, or choose another directory")
    }
    return descriptor
  }

  private static func failure(_ action: String, _ path: String) -> HistoryError {
    let code = errno
    let remedy =
      switch code {
      case EROFS: "mount the file system writable"
      case ENOSPC: "free some space"
      default: "check the directory and its permissions"
      }
    let kind: HistoryError.Kind = code == ENOSPC ? .diskFull : .readOnly
    return HistoryError(kind, "cannot \(action) \(path): \(String(cString: strerror(code))); \(remedy)")
  }

  /// Creates the reserve, a file that is removed when the disk is full, to make room for deleting old blocks. If there is not enough space
  /// for it, there is no reserve.
  static func makeReserve(_ directory: String) {
    let descriptor = Glibc.open(directory + "/reserve", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    if posix_fallocate(descriptor, 0, 2 << 20) != 0 { unlink(directory + "/reserve") }
    close(descriptor)
  }

  static func releaseReserve(_ directory: String) { unlink(directory + "/reserve") }
}
