// Formats an export as JSON lines: one sample per line, with its type, so that an import restores the same series. No I/O.

import Protocols
import Varlink

struct NDJSONExport: ExportFormat {
  private let series: [HistoryContract.Series]

  init(_ series: [HistoryContract.Series]) { self.series = series }

  func start() -> String { "" }

  func row(_ row: ExportRow) -> String {
    row.samples.map { index, sample in
      let series = series[index]
      return JSON.members([
        "time": .int(sample.time), "device": .string(series.device), "property": .string(series.property), "type": .string(series.type),
        "unit": series.unit.map(JSON.string), "value": sample.value.map { JSON($0) } ?? .null, "reason": sample.reason.map(JSON.string),
      ]).text + "\n"
    }.joined()
  }

  func end() -> String { "" }
}
