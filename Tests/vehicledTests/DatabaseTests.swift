// Databases in the import folder: complete, being written, locked, damaged, and other files.

import CSQLite
import Foundation
import Glibc
import Protocols
import Testing

@testable import vehicled

@Suite struct DatabaseTests {
  /// A state directory with an import folder.
  private final class Shelf {
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
      case .failed(let words): words
      case let other: "\(other)"
      }
    }

    /// The files that it leaves in the state directory.
    var leavings: [String] { Files.list(state).filter { $0 != "import" } }
  }

  private static let steps = "CREATE TABLE s(t INTEGER, n INTEGER); INSERT INTO s VALUES(1, 10), (2, 20), (3, NULL);"

  @Test func `rows and arguments have their types`() {
    let shelf = Shelf()
    shelf.make("CREATE TABLE v(a, b, c, d); INSERT INTO v VALUES(1, 2.5, 'drei ü', x'6162'), (NULL, 1e300, '', x'');")
    let rows = shelf.rows("SELECT a, b, c, d FROM v ORDER BY rowid")
    #expect(rows?.first == [.int(1), .float(2.5), .string("drei ü"), .string("ab")])
    #expect(rows?.last == [nil, .float(1e300), .string(""), .string("")])
    let bound = shelf.rows("SELECT ?, ?, ?, ?", [.int(-7), .float(0.5), .string("it's \u{0}"), .bool(true)])
    #expect(bound?.first == [.int(-7), .float(0.5), .string("it's \u{0}"), .int(1)])
    #expect(shelf.rows("SELECT a FROM v WHERE a = ?2 OR a = ?1", [.int(1), .int(9)])?.count == 1)
    #expect(shelf.leavings.isEmpty)
  }

  @Test func `an unchanged file is not read again`() throws {
    let shelf = Shelf()
    shelf.make(Self.steps)
    guard case .rows(_, let stamp) = shelf.databases.answer(DatabaseQuery("db", "SELECT n FROM s")) else {
      Issue.record("no rows")
      return
    }
    let again = DatabaseQuery("db", "SELECT n FROM s", unlessStill: stamp)
    #expect(shelf.databases.answer(again) == .unchanged)
    shelf.run("PRAGMA journal_mode=WAL; INSERT INTO s VALUES(4, 40)")
    guard case .rows(let rows, let newer) = shelf.databases.answer(again) else { Issue.record("no rows"); return }
    #expect(rows.count == 4 && newer != stamp)
    #expect(shelf.databases.answer(DatabaseQuery("nothing", "SELECT 1")) == .missing)
  }

  @Test func `write-ahead logs and hot journals are applied`() throws {
    let shelf = Shelf()
    shelf.run("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; \(Self.steps)")
    #expect(shelf.rows("SELECT total(n) FROM s") == [[.float(30)]])
    #expect(Files.list("\(shelf.state)/import").contains("db-wal"))
    // A writer that was killed during a transaction: the journal rolls it back.
    shelf.make(
      "CREATE TABLE big(n, x); WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<2000) "
        + "INSERT INTO big SELECT 1, hex(zeroblob(200)) FROM c", in: "whole")
    shelf.run("PRAGMA cache_size=2; BEGIN; UPDATE big SET n = 100;", in: "whole")
    let folder = "\(shelf.state)/import"
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: "\(folder)/whole\(suffix)", toPath: "\(folder)/torn\(suffix)")
    }
    #expect(shelf.rows("SELECT total(n) FROM big", of: "torn") == [[.float(2000)]])
    #expect(shelf.leavings.isEmpty)
  }

  @Test func `a locked database is reported after a timeout`() {
    let shelf = Shelf()
    shelf.make(Self.steps)
    shelf.run("BEGIN EXCLUSIVE; INSERT INTO s VALUES(9, 9)")
    #expect(shelf.message().contains("is locked: another program is writing it"))
    #expect(shelf.leavings.isEmpty)
  }

  @Test(arguments: ["", "../secret", "a/b", ".hidden", "..", "/etc/passwd", "a\u{0}b"]) func `only names in the folder are opened`(
    _ name: String
  ) {
    #expect(Shelf().message(of: name).contains("is not a file name"))
  }

  @Test func `other file types and too large files are reported`() throws {
    let shelf = Shelf()
    #expect(mkfifo(shelf.path("fifo"), 0o644) == 0 && mkdir(shelf.path("folder"), 0o755) == 0)
    #expect(symlink("/etc/passwd", shelf.path("link")) == 0)
    try Files.write(shelf.path("plain"), Array("hello, I am no database at all, however long I am".utf8), flags: O_CREAT)
    try Files.write(shelf.path("empty"), [], flags: O_CREAT)
    #expect(shelf.message(of: "fifo").contains("is not a regular file"))
    #expect(shelf.message(of: "folder").contains("is a directory"))
    #expect(shelf.message(of: "link").contains("is a symbolic link; put the file itself there"))
    #expect(shelf.message("SELECT * FROM s", of: "plain").contains("is not an SQLite database"))
    #expect(shelf.message("SELECT * FROM s", of: "empty").contains("no such table: s"))
    shelf.databases.maxSize = 10
    #expect(shelf.message(of: "plain").contains("more than the maximum of 0 MiB"))
    #expect(shelf.leavings.isEmpty)
  }

  @Test func `errors in the query are reported`() {
    let shelf = Shelf()
    shelf.make(Self.steps)
    #expect(shelf.message("SELECT x FROM s").contains("no such column: x"))
    #expect(shelf.message("SELECT n FROM other").contains("no such table: other"))
    for sql in [
      "DELETE FROM s", "SELECT 1; SELECT 2", "ATTACH '/etc/passwd' AS p", "PRAGMA journal_mode", "", "CREATE TABLE t(a)", "VACUUM",
      "SELECT load_extension('x')", "UPDATE sqlite_master SET sql = ''", "INSERT INTO s VALUES(1, 2) RETURNING n", "SELECT ?", "SELEC",
    ] {
      if case .failed = shelf.databases.answer(DatabaseQuery("db", sql)) { continue }
      Issue.record("\(sql) was answered")
    }
    #expect(shelf.rows("SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c")?.count == 2)
    #expect(shelf.rows("SELECT count(*) FROM s") == [[.int(3)]])
  }

  @Test func `results are limited in number, length and time`() {
    let shelf = Shelf()
    shelf.make("CREATE VIEW endless AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c) SELECT i FROM c")
    #expect(shelf.message("SELECT i FROM endless").contains("more than 10000 rows"))
    #expect(shelf.message("SELECT hex(zeroblob(40000))").contains("more than 64 KiB"))
    #expect(shelf.message("SELECT zeroblob(100000000)").contains("value that is too large"))
    shelf.databases.timeout = 50 * .millisecond
    #expect(shelf.message("SELECT count(*) FROM endless").contains("took longer than"))
  }

  @Test func `a damaged database yields rows or an error that names it`() throws {
    let shelf = Shelf()
    shelf.make("\(Self.steps) WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<500) INSERT INTO s SELECT i, i FROM c")
    let whole = try Files.read(shelf.path("db"), limit: 1 << 20)
    var mutation = Noise(state: 0x5EED)
    for _ in 0..<120 {
      var bytes = whole
      for _ in 0..<8 { bytes[Int(mutation.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: mutation.next()) }
      if mutation.next() % 4 == 0 { bytes.removeLast(Int(mutation.next() % UInt64(bytes.count))) }
      try Files.replace(shelf.path("db"), with: bytes)
      _ = shelf.databases.answer(DatabaseQuery("db", "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"))
      switch shelf.databases.answer(DatabaseQuery("db", "SELECT t, n FROM s")) {
      case .rows(let rows, _): #expect(rows.count <= 10_000)
      case .failed(let words): #expect(words.contains(shelf.path("db")))
      default: Issue.record("neither rows nor an error")
      }
    }
    #expect(shelf.leavings.isEmpty)
  }

  @Test func `symbolic links in place of the folders are not followed`() throws {
    let shelf = Shelf()
    let elsewhere = temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: elsewhere) }
    shelf.make(Self.steps)
    try Files.write("\(elsewhere)/precious", [1], flags: O_CREAT)
    #expect(symlink(elsewhere, "\(shelf.state)/.import") == 0)
    #expect(shelf.rows("SELECT count(*) FROM s") == [[.int(3)]])
    #expect(Files.list(elsewhere) == ["precious"] && shelf.leavings.isEmpty)
    #expect(rename("\(shelf.state)/import", "\(elsewhere)/import") == 0)
    #expect(symlink("\(elsewhere)/import", "\(shelf.state)/import") == 0)
    #expect(shelf.message().hasSuffix("/import is not a directory, or is a symbolic link; replace it by a directory"))
    unlink("\(shelf.state)/import")
    #expect(shelf.databases.answer(DatabaseQuery("db", "SELECT 1")) == .missing)
  }

  @Test func `sizes that would overflow are rejected`() {
    let shelf = Shelf()
    // Only some file systems have room for such a number: /dev/shm, ZFS, XFS.
    let large = "/dev/shm/\(shelf.state.split(separator: "/").last ?? "")"
    defer { try? FileManager.default.removeItem(atPath: large) }
    mkdir(large, 0o700)
    mkdir("\(large)/import", 0o700)
    shelf.databases = Databases(state: large)
    for suffix in ["", "-wal"] {
      let path = "\(large)/import/db\(suffix)"
      close(open(path, O_WRONLY | O_CREAT, 0o600))
      #expect(truncate(path, .max) == 0)
    }
    #expect(shelf.message() == "\(large)/import/db has 8796093022207 MiB, more than the maximum of 512 MiB; export less")
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
    let shelf = Shelf()
    shelf.make(Self.steps)
    let probe = Probe()
    probe.answers { input, _, effects in
      if case .started = input { effects.append(.query(7, DatabaseQuery("db", "SELECT n FROM s WHERE t = 2"))) }
    }
    let device = device(probe, disk: Disk(directory: shelf.state))
    device.open(restored: [:])
    #expect(!probe.words.contains { $0.hasPrefix("rows") })
    #expect(await until { probe.words.contains { $0.hasPrefix("rows 7: rows([[Optional(Protocols.Value.int(20))]]") } }, "\(probe.words)")
  }
}
