// The daemon's records in the journal of systemd, read with journalctl, which also reads rotated and persistent files.

import Protocols
import Varlink

enum JournalRecords {
  /// The levels by syslog priority, 0 to 7.
  private static let levels = ["critical", "critical", "critical", "error", "warning", "notice", "info", "debug"]
  private static let priorities = ["trace": 7, "debug": 7, "info": 6, "notice": 5, "warning": 4, "error": 3, "critical": 2]

  /// The latest records, at most `count`, oldest first; nil if the journal cannot be read within this time or has none.
  static func latest(_ count: Int, of device: String?, level: String, since: Int?, within seconds: Double = 20) -> [Contract.LogRecord]? {
    var arguments = ["journalctl", "--quiet", "--no-pager", "--output=json", "--unit=vehicled.service", "--lines=\(count)"]
    arguments.append("--priority=\(priorities[level] ?? 6)")
    if let since { arguments.append("--since=@\(since / 1_000_000)") }
    if let device { arguments.append("VEHICLED_DEVICE=\(device)") }
    guard let text = ExternalProgram.output(arguments, within: seconds, keeping: 16 << 20) else { return nil }
    let records = text.split(separator: "\n").compactMap { record(String($0)) }
    return records.isEmpty ? nil : records
  }

  /// The record in a line of journalctl's JSON; nil if the line has no time, or no message that is text.
  static func record(_ line: String) -> Contract.LogRecord? {
    guard let entry = JSON(line), case .object(let members) = entry, let time = entry["__REALTIME_TIMESTAMP"]?.string.flatMap({ Int($0) }),
      let message = entry["MESSAGE"]?.string
    else { return nil }
    let prefix = "VEHICLED_"
    var details: [String: String] = [:]
    for member in members where member.key.hasPrefix(prefix) {
      details[member.key.dropFirst(prefix.count).lowercased()] = member.value.string ?? member.value.text
    }
    let priority = entry["PRIORITY"]?.string.flatMap { Int($0) } ?? 6
    return Contract.LogRecord(
      time: time, level: levels.indices.contains(priority) ? levels[priority] : "info", device: details.removeValue(forKey: "device"),
      link: details.removeValue(forKey: "link"), message: message, details: details.isEmpty ? nil : details)
  }
}
