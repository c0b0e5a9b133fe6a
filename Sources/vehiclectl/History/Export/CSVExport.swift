// Formats an export as CSV, with a row for each time and a column for each property. A cell is empty if there is no sample at this time, or
// if the value is absent; the optional column `reason` distinguishes the two. No I/O.
// Source: RFC 4180.

import Protocols
import Varlink

struct CSVExport: ExportFormat {
  private let series: [HistoryContract.Series]
  private let hasReasons: Bool
  private var times: ISOTimes
  static let fixedColumns = ["time", "time_us"]
  static let reasonColumn = "reason"

  init(_ series: [HistoryContract.Series], zone: Zone, hasReasons: Bool) {
    (self.series, self.hasReasons) = (series, hasReasons)
    times = ISOTimes(zone)
  }

  func start() -> String {
    let names = series.map { entry in entry.unit.map { "\(entry.reference) (\($0))" } ?? entry.reference }
    let columns = (Self.fixedColumns + names + (hasReasons ? [Self.reasonColumn] : []))
    return columns.map(Self.cell).joined(separator: ",") + "\r\n"
  }

  mutating func row(_ row: ExportRow) -> String {
    var cells = [String](repeating: "", count: series.count)
    var reasons: [String] = []
    for (index, sample) in row.samples {
      cells[index] = sample.value.map { Self.cell(Self.text($0)) } ?? ""
      if hasReasons, sample.value == nil {
        reasons.append("\(series[index].reference): \((sample.reason ?? "absent").replacing(";", with: ","))")
      }
    }
    if hasReasons { cells.append(Self.cell(reasons.joined(separator: "; "))) }
    return "\(times.text(row.time)),\(row.time),\(cells.joined(separator: ","))\r\n"
  }

  func end() -> String { "" }

  private static func text(_ value: Value) -> String {
    if case .bool(let flag) = value { flag ? "true" : "false" } else { Format.text(value) }
  }

  /// The text as a cell, quoted if necessary.
  static func cell(_ text: String) -> String {
    guard text.utf8.contains(where: { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }) else { return text }
    return "\"\(text.replacing("\"", with: "\"\""))\""
  }
}
