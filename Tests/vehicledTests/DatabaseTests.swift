// Databases in the import folder: complete, being written, locked, damaged, and other files.

import CSQLite
import Foundation
import Glibc
import Protocols
import ServiceRuntime
import Testing

@testable import vehicled

@Suite struct DatabaseTests {
  /// A state directory with an import folder.
  private final class ImportFolder {
    let state = temporaryDirectory()
    var databases: Databases
    private var open: [OpaquePointer?] = []

    init() {
      databases = Databases(state: state)
      databases.lockTimeout = 200 * .millisecond
      mkdir("\(state)/import", 0o755)
    }

    deinit {
      for database in open { sqlite3_close_v2(database) }
      try? FileManager.default.removeItem(atPath: state)
    }

    func path(_ name: String) -> String { "\(state)/import/\(name)" }

    /// Runs statements and leaves the database open.
    func run(_ sql: String, in name: String = "db") {
      var database: OpaquePointer?
      #expect(sqlite3_open(path(name), &database) == SQLITE_OK)
      #expect(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK, "\(String(cString: sqlite3_errmsg(database)))")
      open.append(database)
    }

    /// Runs statements and closes it.
    func make(_ sql: String, in name: String = "db") {
      run(sql, in: name)
      sqlite3_close_v2(open.removeLast())
    }

    func rows(_ sql: String, _ arguments: [Value] = [], of name: String = "db") -> [[Value?]]? {
      if case .rows(let rows, _) = databases.answer(DatabaseQuery(name, sql, arguments)) { rows } else { nil }
    }

    func message(_ sql: String = "SELECT 1", of name: String = "db") -> String {
      switch databases.answer(DatabaseQuery(name, sql)) {
      case .failed(let message): message
      case let other: "\(other)"
      }
    }

    /// The files that it leaves in the state directory.
    var leftFiles: [String] { Files.list(state).filter { $0 != "import" } }
  }

  private static let steps = "CREATE TABLE s(t INTEGER, n INTEGER); INSERT INTO s VALUES(1, 10), (2, 20), (3, NULL);"

  @Test func `rows and arguments have their types`() {
    let folder = ImportFolder()
    folder.make("CREATE TABLE v(a, b, c, d); INSERT INTO v VALUES(1, 2.5, 'drei ü', x'6162'), (NULL, 1e300, '', x'');")
    let rows = folder.rows("SELECT a, b, c, d FROM v ORDER BY rowid")
    #expect(rows?.first == [.int(1), .float(2.5), .string("drei ü"), .string("ab")])
    #expect(rows?.last == [nil, .float(1e300), .string(""), .string("")])
    let bound = folder.rows("SELECT ?, ?, ?, ?", [.int(-7), .float(0.5), .string("it's \u{0}"), .bool(true)])
    #expect(bound?.first == [.int(-7), .float(0.5), .string("it's \u{0}"), .int(1)])
    #expect(folder.rows("SELECT a FROM v WHERE a = ?2 OR a = ?1", [.int(1), .int(9)])?.count == 1)
    #expect(folder.leftFiles.isEmpty)
  }

  @Test func `an unchanged file is not read again`() throws {
    let folder = ImportFolder()
    folder.make(Self.steps)
    guard case .rows(_, let stamp) = folder.databases.answer(DatabaseQuery("db", "SELECT n FROM s")) else {
      Issue.record("no rows")
      return
    }
    let again = DatabaseQuery("db", "SELECT n FROM s", knownStamp: stamp)
    #expect(folder.databases.answer(again) == .unchanged)
    folder.run("PRAGMA journal_mode=WAL; INSERT INTO s VALUES(4, 40)")
    guard case .rows(let rows, let newer) = folder.databases.answer(again) else { Issue.record("no rows"); return }
    #expect(rows.count == 4 && newer != stamp)
    #expect(folder.databases.answer(DatabaseQuery("nothing", "SELECT 1")) == .missing)
  }

  @Test func `write-ahead logs and hot journals are applied`() throws {
    let folder = ImportFolder()
    folder.run("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; \(Self.steps)")
    #expect(folder.rows("SELECT total(n) FROM s") == [[.float(30)]])
    #expect(Files.list("\(folder.state)/import").contains("db-wal"))
    // A writer that was killed during a transaction: the journal rolls it back.
    folder.make(
      "CREATE TABLE big(n, x); WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<2000) "
        + "INSERT INTO big SELECT 1, hex(zeroblob(200)) FROM c", in: "whole")
    folder.run("PRAGMA cache_size=2; BEGIN; UPDATE big SET n = 100;", in: "whole")
    let path = "\(folder.state)/import"
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: "\(path)/whole\(suffix)", toPath: "\(path)/torn\(suffix)")
    }
    #expect(folder.rows("SELECT total(n) FROM big", of: "torn") == [[.float(2000)]])
    #expect(folder.leftFiles.isEmpty)
  }

  @Test func `a locked database is reported after a timeout`() {
    let folder = ImportFolder()
    folder.make(Self.steps)
    folder.run("BEGIN EXCLUSIVE; INSERT INTO s VALUES(9, 9)")
    #expect(folder.message().contains("is locked: another program is writing to it"))
    #expect(folder.leftFiles.isEmpty)
  }

  @Test(arguments: ["", "../secret", "a/b", ".hidden", "..", "/etc/passwd", "a\u{0}b"]) func `only names in the folder are opened`(
    _ name: String
  ) {
    #expect(ImportFolder().message(of: name).contains("is not a file name"))
  }

  @Test func `other file types and too large files are reported`() throws {
    let folder = ImportFolder()
    #expect(mkfifo(folder.path("fifo"), 0o644) == 0 && mkdir(folder.path("folder"), 0o755) == 0)
    #expect(symlink("/etc/passwd", folder.path("link")) == 0)
    try Files.write(folder.path("plain"), Array("hello, I am no database at all, however long I am".utf8), flags: O_CREAT)
    try Files.write(folder.path("empty"), [], flags: O_CREAT)
    #expect(folder.message(of: "fifo").contains("is not a regular file"))
    #expect(folder.message(of: "folder").contains("is a directory"))
    #expect(folder.message(of: "link").contains("is a symbolic link; put the file itself there"))
    #expect(folder.message("SELECT * FROM s", of: "plain").contains("is not an SQLite database"))
    #expect(folder.message("SELECT * FROM s", of: "empty").contains("no such table: s"))
    folder.databases.maxSize = 10
    #expect(folder.message(of: "plain").contains("more than the maximum of 0 MiB"))
    #expect(folder.leftFiles.isEmpty)
  }

  @Test func `errors in the query are reported`() {
    let folder = ImportFolder()
    folder.make(Self.steps)
    #expect(folder.message("SELECT x FROM s").contains("no such column: x"))
    #expect(folder.message("SELECT n FROM other").contains("no such table: other"))
    for sql in [
      "DELETE FROM s", "SELECT 1; SELECT 2", "ATTACH '/etc/passwd' AS p", "PRAGMA journal_mode", "", "CREATE TABLE t(a)", "VACUUM",
      "SELECT load_extension('x')", "UPDATE sqlite_master SET sql = ''", "INSERT INTO s VALUES(1, 2) RETURNING n", "SELECT ?", "SELEC",
    ] {
      if case .failed = folder.databases.answer(DatabaseQuery("db", sql)) { continue }
      Issue.record("\(sql) was answered")
    }
    #expect(folder.rows("SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c")?.count == 2)
    #expect(folder.rows("SELECT count(*) FROM s") == [[.int(3)]])
  }

  @Test func `results are limited in number, length and time`() {
    let folder = ImportFolder()
    folder.make("CREATE VIEW endless AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c) SELECT i FROM c")
    #expect(folder.message("SELECT i FROM endless").contains("more than 10000 rows"))
    #expect(folder.message("SELECT hex(zeroblob(40000))").contains("over 64 KiB"))
    #expect(folder.message("SELECT zeroblob(100000000)").contains("value that is too large"))
    folder.databases.timeout = 50 * .millisecond
    #expect(folder.message("SELECT count(*) FROM endless").contains("took longer than"))
  }

  @Test func `a damaged database yields rows or an error that names it`() throws {
    let folder = ImportFolder()
    folder.make("\(Self.steps) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<500) INSERT INTO s SELECT i, i FROM c")
    let whole = try Files.read(folder.path("db"), limit: 1 << 20)
    var mutation = Noise(state: 0x5EED)
    for _ in 0..<120 {
      var bytes = whole
      for _ in 0..<8 { bytes[Int(mutation.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: mutation.next()) }
      if mutation.next() % 4 == 0 { bytes.removeLast(Int(mutation.next() % UInt64(bytes.count))) }
      try Files.replace(folder.path("db"), with: bytes)
      _ = folder.databases.answer(DatabaseQuery("db", "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"))
      switch folder.databases.answer(DatabaseQuery("db", "SELECT t, n FROM s")) {
      case .rows(let rows, _): #expect(rows.count <= 10_000)
      case .failed(let message): #expect(message.contains(folder.path("db")))
      default: Issue.record("neither rows nor an error")
      }
    }
    #expect(folder.leftFiles.isEmpty)
  }

  @Test func `symbolic links in place of the folders are not followed`() throws {
    let folder = ImportFolder()
    let elsewhere = temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: elsewhere) }
    folder.make(Self.steps)
    try Files.write("\(elsewhere)/precious", [1], flags: O_CREAT)
    #expect(symlink(elsewhere, "\(folder.state)/.import") == 0)
    #expect(folder.rows("SELECT count(*) FROM s") == [[.int(3)]])
    #expect(Files.list(elsewhere) == ["precious"] && folder.leftFiles.isEmpty)
    #expect(rename("\(folder.state)/import", "\(elsewhere)/import") == 0)
    #expect(symlink("\(elsewhere)/import", "\(folder.state)/import") == 0)
    #expect(folder.message().hasSuffix("/import is not a directory, or is a symbolic link; replace it with a directory"))
    unlink("\(folder.state)/import")
    #expect(folder.databases.answer(DatabaseQuery("db", "SELECT 1")) == .missing)
  }

  @Test func `sizes that would overflow are rejected`() {
    let folder = ImportFolder()
    // Only some file systems have room for such a number: /dev/shm, ZFS, XFS.
    let large = "/dev/shm/\(folder.state.split(separator: "/").last ?? "")"
    defer { try? FileManager.default.removeItem(atPath: large) }
    mkdir(large, 0o700)
    mkdir("\(large)/import", 0o700)
    folder.databases = Databases(state: large)
    for suffix in ["", "-wal"] {
      let path = "\(large)/import/db\(suffix)"
      close(open(path, O_WRONLY | O_CREAT, 0o600))
      #expect(truncate(path, .max) == 0)
    }
    #expect(folder.message() == "\(large)/import/db is 8796093022207 MiB, more than the maximum of 512 MiB; export less data")
  }

  /// Reproducible random bytes.
  private struct Noise {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state >> 33
    }
  }

  @Test @Loop func `a query from a machine does not block the loop`() async {
    let folder = ImportFolder()
    folder.make(Self.steps)
    let probe = Probe()
    probe.onInput { input, _, effects in
      if case .started = input { effects.append(.query(7, DatabaseQuery("db", "SELECT n FROM s WHERE t = 2"))) }
    }
    let device = device(probe, disk: Disk(directory: folder.state))
    device.open(restored: [:])
    #expect(!probe.inputTexts.contains { $0.hasPrefix("rows") })
    #expect(
      await until { probe.inputTexts.contains { $0.hasPrefix("rows 7: rows([[Optional(Protocols.Value.int(20))]]") } },
      "\(probe.inputTexts)")
  }
}
