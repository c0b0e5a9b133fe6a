// Gadgetbridge exports read with SQLite, from the file to the published values.

import CSQLite
import Foundation
import Glibc
import Protocols
import Testing

@testable import vehicled

@Suite struct GadgetbridgeImportTests {
  /// A health device with an export in its import folder.
  private struct Export {
    let state = temporaryDirectory()
    /// 2026-03-10, 14:05:00 in Berlin, whose midnight was at 1773097200.
    static let now = 1_773_147_900
    static let midnight = 1_773_097_200

    init(_ sql: String) {
      mkdir("\(state)/import", 0o755)
      var database: OpaquePointer?
      #expect(sqlite3_open("\(state)/import/Gadgetbridge", &database) == SQLITE_OK)
      #expect(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK, "\(String(cString: sqlite3_errmsg(database)))")
      sqlite3_close_v2(database)
    }

    /// The values that a device publishes from it, and its fault.
    func published(_ options: [String: Value] = [:]) throws -> (values: [String: Reading.Content], fault: String?) {
      let options = options.merging(["gadgetbridge": .string("Gadgetbridge")]) { $1 }
      var machine = try Kind.health.make(Setup(options: options))
      var (values, fault): ([String: Reading.Content], String?) = ([:], nil)
      var inputs = [Input.started(restored: [:], wall: WallTime(microseconds: Int64(Self.now) * 1_000_000, utcOffset: 3600))]
      while !inputs.isEmpty {
        var effects = Effects()
        machine.handle(inputs.removeFirst(), at: 0, &effects)
        for reading in effects.readings { values[machine.schema.properties[reading.property].name] = reading.content }
        for effect in effects.list {
          if case .query(let id, let query) = effect { inputs.append(.rows(id, Databases(state: state).answer(query))) }
          if case .fault(let message) = effect { fault = message }
        }
      }
      try? FileManager.default.removeItem(atPath: state)
      return (values, fault)
    }
  }

  private static let devices = """
    CREATE TABLE DEVICE (_id INTEGER PRIMARY KEY, NAME TEXT NOT NULL, MANUFACTURER TEXT, IDENTIFIER TEXT UNIQUE, TYPE INTEGER, ALIAS TEXT);
    INSERT INTO DEVICE VALUES(1, 'Mi Band 4', 'Huami', 'AA:BB', 0, NULL), (2, 'Forerunner', 'Garmin', 'CC:DD', 0, 'my watch');
    """

  private static func samples(_ table: String, _ more: String = "") -> String {
    """
    CREATE TABLE \(table) (TIMESTAMP INTEGER NOT NULL, DEVICE_ID INTEGER NOT NULL, USER_ID INTEGER NOT NULL, RAW_INTENSITY INTEGER,
      STEPS INTEGER NOT NULL, RAW_KIND INTEGER, HEART_RATE INTEGER NOT NULL\(more), PRIMARY KEY (TIMESTAMP, DEVICE_ID)) WITHOUT ROWID;
    """
  }

  private static func row(_ time: Int, device: Int = 1, steps: Int, heart: Int, more: String = "") -> String {
    "(\(time), \(device), 1, 20, \(steps), 1, \(heart)\(more))"
  }

  @Test func `steps are summed from local midnight, and the newest heart rate is used`() throws {
    let export = Export(
      Self.devices + Self.samples("MI_BAND_ACTIVITY_SAMPLE")
        + "INSERT INTO MI_BAND_ACTIVITY_SAMPLE VALUES"
        + [
          Self.row(Export.midnight - 60, steps: 5000, heart: 90), Self.row(Export.midnight, steps: 10, heart: 80),
          Self.row(Export.midnight + 60, steps: 0, heart: 255), Self.row(Export.midnight + 120, steps: -1, heart: 0),
          Self.row(Export.now - 90, steps: 30, heart: 71), Self.row(Export.now - 30, steps: 2, heart: 255),
          Self.row(Export.now - 20, steps: 1, heart: -1), Self.row(Export.now + 90_000, steps: 70, heart: 200),
        ].joined(separator: ", "))
    let (values, fault) = try export.published()
    #expect(fault == nil)
    #expect(values["steps"] == .value(.int(43)) && values["heart-rate"] == .value(.float(71)))
    #expect(values["steps-source"] == .value(.string("Gadgetbridge: Mi Band 4 at 14:04")))
    #expect(values["active-energy"] == .absent("Mi Band 4 does not record active-energy: vehiclectl set DEVICE.active-energy VALUE"))
  }

  @Test func `distance and energy are read from columns whose names give the unit`() throws {
    let export = Export(
      Self.devices + Self.samples("GARMIN_ACTIVITY_SAMPLE", ", DISTANCE_CM INTEGER, ACTIVE_CALORIES INTEGER")
        + Self.samples("LEFUN_ACTIVITY_SAMPLE", ", DISTANCE INTEGER, CALORIES INTEGER")
        + "INSERT INTO GARMIN_ACTIVITY_SAMPLE VALUES"
        + [
          Self.row(Export.midnight + 1, device: 2, steps: 1, heart: 60, more: ", 100000, 40"),
          Self.row(Export.now - 5, device: 2, steps: 2, heart: 61, more: ", 20050, 2"),
          Self.row(Export.now - 4, device: 2, steps: 2, heart: 61, more: ", -1, NULL"),
        ].joined(separator: ", "))
    let (values, _) = try export.published()
    #expect(values["distance"] == .value(.float(1.201)) && values["active-energy"] == .value(.float(42)))
    #expect(values["distance-source"] == .value(.string("Gadgetbridge: my watch at 14:04")))
  }

  @Test func `timestamps in milliseconds are recognised, and summary tables are ignored`() throws {
    let export = Export(
      Self.devices + Self.samples("XIAOMI_ACTIVITY_SAMPLE")
        + "CREATE TABLE XIAOMI_DAILY_SUMMARY_SAMPLE (TIMESTAMP INTEGER, DEVICE_ID INTEGER, STEPS INTEGER);"
        + "INSERT INTO XIAOMI_DAILY_SUMMARY_SAMPLE VALUES(\(Export.now * 1000), 1, 9999);"
        + "INSERT INTO XIAOMI_ACTIVITY_SAMPLE VALUES"
        + [
          Self.row((Export.midnight - 1) * 1000, steps: 1000, heart: 60), Self.row((Export.now - 40) * 1000, steps: 7, heart: 66),
        ].joined(separator: ", "))
    let (values, _) = try export.published()
    #expect(values["steps"] == .value(.int(7)) && values["heart-rate"] == .value(.float(66)))
  }

  @Test func `gadgetbridge-device selects one of several devices`() throws {
    let sql =
      Self.devices + Self.samples("A_SAMPLE") + Self.samples("B_SAMPLE")
      + "INSERT INTO A_SAMPLE VALUES\(Self.row(Export.now - 9, steps: 5, heart: 60));"
      + "INSERT INTO B_SAMPLE VALUES\(Self.row(Export.now - 3, device: 2, steps: 6, heart: 61))"
    #expect(try Export(sql).published().values["steps"] == .value(.int(6)))
    #expect(try Export(sql).published(["gadgetbridge-device": .string("Mi Band 4")]).values["steps"] == .value(.int(5)))
    #expect(try Export(sql).published(["gadgetbridge-device": .string("MY WATCH")]).values["steps"] == .value(.int(6)))
    #expect(
      try Export(sql).published(["gadgetbridge-device": .string("x")]).fault
        == "no samples of device \"x\" in Gadgetbridge's database: it has my watch, Mi Band 4")
  }

  @Test func `malicious names and values do no harm`() throws {
    let export = Export(
      """
      CREATE TABLE "x"" UNION SELECT 1; --" (Timestamp TEXT, "steps" BLOB, heart_rate TEXT, "device_id" TEXT);
      INSERT INTO "x"" UNION SELECT 1; --" VALUES(\(Export.now - 5), 12, '70', '\u{1B}[2J'), ('never', 'many', x'00', NULL), (1e300, -1e300, 9e9, 5);
      CREATE TABLE "y'" (TIMESTAMP, STEPS); INSERT INTO "y'" VALUES(\(Export.now), 9223372036854775807), (NULL, NULL);
      CREATE VIEW v AS SELECT * FROM v2; CREATE TABLE DEVICE(_id, NAME); CREATE TABLE "" (TIMESTAMP, STEPS);
      """)
    let (values, fault) = try export.published(["gadgetbridge-device": .string("device [2J")])
    #expect(fault == nil, "\(fault ?? "")")
    #expect(values["steps"] == .value(.int(12)) && values["heart-rate"] == .value(.float(70)))
    #expect(values["steps-source"] == .value(.string("Gadgetbridge: device [2J at 14:04")))
  }

  @Test func `a database that is not a Gadgetbridge export is a fault`() throws {
    #expect(try Export("CREATE TABLE t(a)").published().fault?.contains("not a Gadgetbridge database") == true)
    #expect(
      try Export(Self.devices + Self.samples("S")).published().fault?.contains("no samples in Gadgetbridge's database") == true)
  }
}
