// Log records as lines: time, level, device and link, message, other fields. No I/O.

import Varlink

enum LogFormat {
  static let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]

  /// Fields that repeat what the message reports; programs use them.
  private static let hiddenFields: Set = ["event"]
  /// The maximum width of the subject column. The message after a wider subject is not aligned.
  private static let maxSubject = 24

  /// The device and link that a record is about.
  private static func subject(_ record: Contract.LogRecord) -> String {
    Output.oneLine([record.device, record.link].compactMap(\.self).joined(separator: "/"))
  }

  /// The width of the column of the subjects of these records.
  static func subjectWidth(_ records: [Contract.LogRecord]) -> Int {
    records.map { subject($0).displayWidth }.filter { $0 <= maxSubject }.max() ?? 0
  }

  /// The line of a record: `Mar  1 14:30:05 warning  ev/main  no reply`. `now` in seconds since the epoch decides whether the date is
  /// shown.
  static func line(_ record: Contract.LogRecord, now: Double, subjectWidth: Int = 0, paint: (String, Style) -> String) -> String {
    let subject = subject(record)
    let fields = (record.details ?? [:]).filter { !hiddenFields.contains($0.key) }
    let details = fields.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
    let level = record.level.padding(to: 8)
    return paint(time(record.time, now: now), .dim) + " " + paint(level, style(of: record.level)) + " "
      + paint(subject, .bold) + String(repeating: " ", count: max(0, subjectWidth - subject.displayWidth))
      + (subject.isEmpty && subjectWidth == 0 ? "" : "  ")
      + paint(Output.oneLine(record.message), style(of: record.level))
      + paint(Output.oneLine(details), .dim)
  }

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  private static func time(_ microseconds: Int, now: Double) -> String {
    let time = TimeArgument.local(Double(microseconds) / 1e6)
    let today = TimeArgument.local(now)
    let clock = [time.tm_hour, time.tm_min, time.tm_sec].map { String($0 + 100).dropFirst() }.joined(separator: ":")
    if (time.tm_year, time.tm_yday) == (today.tm_year, today.tm_yday) { return clock }
    let day = "\(months[Int(time.tm_mon)]) \(time.tm_mday < 10 ? " " : "")\(time.tm_mday)"
    return (time.tm_year == today.tm_year ? day : "\(time.tm_year + 1900) \(day)") + " " + clock
  }

  private static func style(of level: String) -> Style {
    switch level {
    case "critical", "error": .bad
    case "warning": .warning
    case "trace", "debug": .dim
    default: .plain
    }
  }
}

extension String {
  /// The text followed by spaces up to this number of characters.
  fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
