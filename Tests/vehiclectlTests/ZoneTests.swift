// Time zones and civil times: known offsets, rules, and agreement with the C library.

import Glibc
import Testing

@testable import vehiclectl

@Suite struct ZoneTests {
  @Test(arguments: [
    ("Europe/Berlin", 1_795_417_920, 3600, "CET"), ("Europe/Berlin", 1_784_000_000, 7200, "CEST"), ("UTC", 0, 0, "UTC"),
    ("America/New_York", 1_793_512_799, -14_400, "EDT"), ("America/New_York", 1_793_512_800, -18_000, "EST"),
    ("Asia/Kolkata", 1_795_417_920, 19_800, "IST"), ("Europe/London", -1_000_000_000, 3600, "BST"),
    // Beyond the list of changes in the file, its rule counts.
    ("Europe/Berlin", 4_088_000_000, 7200, "CEST"), ("Australia/Sydney", 4_100_000_000, 39_600, "AEDT"),
  ]) func `a zone has known offsets`(_ name: String, _ time: Int, _ seconds: Int, _ abbreviation: String) throws {
    let offset = try #require(Zone(named: name)).offset(at: time)
    #expect(offset.seconds == seconds && offset.abbreviation == abbreviation, "\(name) \(time): \(offset)")
  }

  @Test(arguments: [
    ("2024-02-29T23:59:59Z", true), ("2026-11-23T08:12:05.25+01:00", true), ("2026-02-29T08:00:00Z", false),
    ("2026-02-31T08:00:00Z", false), ("2026-13-01T08:00:00Z", false), ("2026-01-01T24:00:00Z", false), ("2026-01-01T08:60:00Z", false),
    ("2026-01-01T99:00:00Z", false), ("2026-01-00T08:00:00Z", false),
  ]) func `only existing dates and times are imported`(_ text: String, _ isValid: Bool) {
    #expect((CivilTime.parse(text) != nil) == isValid)
  }

  @Test(arguments: ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe"])
  func `other names are no zones`(_ name: String) { #expect(Zone(named: name) == nil) }

  @Test func `damaged files are no zones`() {
    #expect(Zone([], name: "x") == nil && Zone(Array("TZif1".utf8), name: "x") == nil)
    var bytes = Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
    bytes += [UInt8](repeating: 0xFF, count: 24)
    #expect(Zone(bytes, name: "x") == nil)
    #expect(Zone(Array("TZif2".utf8) + [UInt8](repeating: 0x01, count: 200), name: "x") == nil)
  }

  @Test func `TZ names a zone or is a rule`() {
    let summer = 1_784_000_000
    #expect(Zone.local(":Europe/Berlin").offset(at: summer).seconds == 7200)
    #expect(Zone.local("CET-1CEST,M3.5.0,M10.5.0/3").offset(at: summer).abbreviation == "CEST")
    #expect(Zone.local("CET-1CEST,M3.5.0,M10.5.0/3").offset(at: 1_795_417_920).abbreviation == "CET")
    #expect(Zone.local("<+0330>-3:30").offset(at: summer).seconds == 12_600)
    #expect(Zone.local("NZST-12NZDT,M9.5.0,M4.1.0/3").offset(at: summer).abbreviation == "NZST")
    #expect(Zone.local("EST5EDT,J60/0,J300").offset(at: summer).seconds == -14_400)
    #expect(Zone.local("EST5EDT,59,300/-1").offset(at: summer).seconds == -14_400)
    for wrong in ["nonsense", "AB3", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.5.0"] { #expect(ZoneRule(wrong) == nil, "\(wrong)") }
  }

  @Test func `civil times agree with the C library in every month of four centuries`() {
    for month in 0..<4800 {
      let civil = CivilTime(1800 + month / 12, month % 12 + 1, 28, 23, 59, 58)
      var time = time_t(civil.seconds)
      var parts = tm()
      gmtime_r(&time, &parts)
      let back = CivilTime(civil.seconds * 1_000_000, in: .utc)
      #expect(back.year == Int(parts.tm_year) + 1900 && back.month == Int(parts.tm_mon) + 1 && back.day == 28 && back.second == 58)
      let weekday = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][Int(parts.tm_wday)]
      #expect(back.weekdayAndDay.hasPrefix(weekday))
    }
  }

  @Test func `ISO times can be read again`() throws {
    let berlin = try #require(Zone(named: "Europe/Berlin"))
    let time = HistoryRig.morning + 5_250_000
    let text = CivilTime(time, in: berlin).iso()
    #expect(text == "2026-11-23T08:12:05.250000+01:00" && CivilTime.parse(text) == time)
    #expect(CivilTime(HistoryRig.morning, in: .utc).iso(utc: true) == "2026-11-23T07:12:00Z")
    #expect(CivilTime.parse("2026-11-23T07:12:00Z") == HistoryRig.morning)
    #expect(CivilTime.parse("2026-11-23 02:42:00-0430") == HistoryRig.morning)
    #expect(CivilTime(-1, in: .utc).iso(utc: true) == "1969-12-31T23:59:59.999999Z")
    for wrong in ["2026-11-23T07:12:00", "2026-13-23T07:12:00Z", "23.11.2026"] { #expect(CivilTime.parse(wrong) == nil) }
  }
}
