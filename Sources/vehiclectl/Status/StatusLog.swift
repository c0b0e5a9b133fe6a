// The last log records of a device for `status`, from the journal if it can be read quickly, otherwise from the daemon.

import Varlink

enum StatusLog {
  /// The lines, or none if neither the journal nor the daemon can be read.
  static func lines(_ device: Contract.Device, count: Int, now: Double, client: Client, socket: String, paint: (String, Style) -> String)
    -> [String]
  {
    let journal =
      socket == Client.defaultSocket
      ? JournalRecords.latest(count, of: device.name, level: "info", since: nil, within: 2) : nil
    let records = journal ?? (try? client.call(Contract.Log.self, .init(device: device.name, level: "info")).records) ?? []
    return records.suffix(count).map { record in
      // All are about this device; the command `log` shows the other fields.
      var record = record
      (record.device, record.details) = (nil, nil)
      if device.links.count < 2 { record.link = nil }
      return LogFormat.line(record, now: now, paint: paint)
    }
  }

  /// The number of lines for a window of this height.
  static func count(rows: Int?) -> Int { rows.map { min(10, max(3, $0 / 6)) } ?? 10 }
}
