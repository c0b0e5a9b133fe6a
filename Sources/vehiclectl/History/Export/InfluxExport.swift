// Formats an export as InfluxDB line protocol: one line has all samples of a device at one time. Absent values are omitted. No I/O.
// Source: InfluxDB documentation, "Line protocol reference" (escaping, types, precision ns).

import Protocols
import Varlink

struct InfluxExport: ExportFormat {
  private static let measurement = "vehicled"
  private let series: [HistoryContract.Series]

  init(_ series: [HistoryContract.Series]) { self.series = series }

  func start() -> String { "" }

  func row(_ row: ExportRow) -> String {
    var devices: [String] = []
    var fields: [String: [String]] = [:]
    for (index, sample) in row.samples {
      guard let value = sample.value else { continue }
      let device = series[index].device
      if fields[device] == nil { devices.append(device) }
      fields[device, default: []].append("\(Self.key(series[index].property))=\(Self.text(value))")
    }
    return devices.map { device in
      "\(Self.measurement),device=\(Self.key(device)) \((fields[device] ?? []).joined(separator: ",")) \(row.time)000\n"
    }.joined()
  }

  func end() -> String { "" }

  private static func text(_ value: Value) -> String {
    switch value {
    case .bool(let flag): flag ? "true" : "false"
    case .int(let number): "\(number)i"
    case .float(let number): Value.text(number)
    case .string, .list:
      "\"" + Format.text(value).replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
    }
  }

  /// Escapes commas, equals signs and spaces in a tag value or field key. A line break becomes a space.
  private static func key(_ text: String) -> String {
    text.replacing(",", with: "\\,").replacing("=", with: "\\=").replacing(" ", with: "\\ ").replacing("\n", with: "\\ ")
  }
}
