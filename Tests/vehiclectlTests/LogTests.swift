// The command log: times, records of the journal, lines.

import Glibc
import Testing
import Varlink

@testable import vehiclectl

@Suite("Log") struct LogTests {
  /// 2026-03-01 14:30:05 in the local time zone.
  private let now: Double = {
    var time = tm()
    (time.tm_year, time.tm_mon, time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec, time.tm_isdst) = (126, 2, 1, 14, 30, 5, -1)
    return Double(mktime(&time))
  }()

  @Test(arguments: [
    ("10min", 600.0), ("-10m", 600), ("1.5h", 5400), ("3d", 259_200), ("90s", 90), ("14:30", 5), ("14:30:01", 4), ("today", 52_205),
    ("yesterday", 138_605), ("2026-03-01", 52_205), ("2026-03-01 14:00", 1805), ("2026-02-28T14:30:05", 86_400), ("0s", 0),
  ]) func `a time is a duration, a time of day or a date`(_ text: String, before seconds: Double) {
    #expect(TimeArgument.parse(text, now: now) == Int((now - seconds) * 1e6))
  }

  @Test func `a time can have an offset from UTC`() {
    #expect(TimeArgument.parse("2026-03-28T00:16:28Z", now: now) == 1_774_656_988_000_000)
    #expect(TimeArgument.parse("2026-03-28T02:16:28.5+02:00", now: now) == 1_774_656_988_500_000)
  }

  @Test(arguments: ["", "-", "soon", "10", "10 min", "25:00", "12:60", "2026-13-01", "2026-03", "1:2:3:4", "14:30 14:30", "1e99d"])
  func `other texts are rejected`(_ text: String) {
    #expect(TimeArgument.parse(text, now: now) == nil)
  }

  @Test func `a record of the journal has level, device, link and further fields`() throws {
    let line = """
      {"__REALTIME_TIMESTAMP":"1772000000000001","PRIORITY":"4","MESSAGE":"no reply","VEHICLED_DEVICE":"ev","VEHICLED_LINK":"main",\
      "VEHICLED_ATTEMPT":"3","_PID":"17","SYSLOG_IDENTIFIER":"vehicled"}
      """
    let record = try #require(JournalRecords.record(line))
    let expected = Contract.LogRecord(
      time: 1_772_000_000_000_001, level: "warning", device: "ev", link: "main", message: "no reply", details: ["attempt": "3"])
    #expect(record == expected)
    #expect(JournalRecords.record(#"{"MESSAGE":"without a time"}"#) == nil && JournalRecords.record("-- No entries --") == nil)
    // journalctl prints bytes that are not UTF-8 as an array.
    #expect(JournalRecords.record(#"{"__REALTIME_TIMESTAMP":"1","MESSAGE":[255,10]}"#) == nil)
  }

  @Test func `a line has time, level, device, link, message and fields`() {
    func line(_ seconds: Double, _ level: String, _ device: String?, _ link: String?, _ details: [String: String]? = nil) -> String {
      let time = Int((now + seconds) * 1e6)
      let record = Contract.LogRecord(
        time: time, level: level, device: device, link: link, message: "link\u{1b}[2J is up", details: details)
      return LogFormat.line(record, now: now) { text, _ in text }
    }
    #expect(line(-5, "notice", "ev", "main") == "14:30:00 notice   ev/main  link [2J is up")
    #expect(line(-5, "notice", "ev", nil, ["event": "vehicle"]) == "14:30:00 notice   ev  link [2J is up")
    #expect(line(-86_400, "warning", "ev", nil, ["b": "2", "a": "1"]) == "Feb 28 14:30:05 warning  ev  link [2J is up a=1 b=2")
    let subjects = [("ev", "main"), ("ev", nil), (nil, nil), ("a-device-with-a-very-long-name", nil)] as [(String?, String?)]
    let records = subjects.map { device, link in
      Contract.LogRecord(time: Int(now * 1e6), level: "info", device: device, link: link, message: "x", details: nil)
    }
    let aligned = records.map { LogFormat.line($0, now: now, subjectWidth: LogFormat.subjectWidth(records)) { text, _ in text } }
    #expect(
      aligned == [
        "14:30:05 info     ev/main  x", "14:30:05 info     ev       x", "14:30:05 info              x",
        "14:30:05 info     a-device-with-a-very-long-name  x",
      ])
    #expect(line(-400 * 86_400, "error", nil, nil).hasPrefix("2025 Jan 25 14:30:05 error    link"))
  }
}
