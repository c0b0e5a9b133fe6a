// The directory of the store: the schema of the database, and the reserve for a full disk.

import Glibc
import SQLite

enum HistoryFile {
  static let name = "history.db"
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

  private static let format = Database.Format(
    application: 0x7668_6973 /* vhis */, version: 1, schema: schema, owner: "a history of vehicled")

  /// Opens the database in a directory. A new database is initialised.
  static func open(_ directory: String, writable: Bool) throws(StoreError) -> Database {
    // Power can fail at any time, so each commit is on the disk when it returns. The log is checkpointed after about an hour of driving.
    // Each thread that reads has a cache of its own. A small one is enough, because the kernel caches the file.
    try Database(
      directory + "/" + name, format, writable: writable,
      settings: writable
        ? "PRAGMA cache_size = -4000; PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608" : "PRAGMA cache_size = -1000")
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
