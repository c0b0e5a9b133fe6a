// Formats the report of the action monitors of kind obd by ECU: malfunction indicator lamp, readiness, and test results with their limits.

import Protocols

struct Monitors {
  /// The name of the action.
  static let action = "monitors"

  private struct ECU {
    let name: String
    var lamp: String?
    var codes: String?
    /// The readiness of each monitor since the codes were cleared and in this driving cycle.
    var readiness: [(name: String, sinceClear: String?, thisDrivingCycle: String?)] = []
    var tests: [[String]] = []
  }

  private static let columns = ["name", "test", "result", "value", "min", "max", "unit"]
  private let ecus: [ECU]
  let text: String?

  init(_ report: TroubleReport) {
    var ecus: [ECU] = []
    for row in report.rows {
      let cell = { (title: String) in report.cell(title, of: row) }
      let name = cell("ecu") ?? ""
      if ecus.last?.name != name { ecus.append(ECU(name: name)) }
      let last = ecus.count - 1
      switch cell("what") {
      case "lamp": ecus[last].lamp = cell("result")
      case "codes": ecus[last].codes = cell("value")
      case "readiness":
        let monitor = cell("name") ?? ""
        let index = ecus[last].readiness.firstIndex { $0.name == monitor } ?? ecus[last].readiness.count
        if index == ecus[last].readiness.count { ecus[last].readiness.append((monitor, nil, nil)) }
        if cell("test") == ReadinessPeriod.thisDrivingCycle {
          ecus[last].readiness[index].thisDrivingCycle = cell("result")
        } else {
          ecus[last].readiness[index].sinceClear = cell("result")
        }
      case "test": ecus[last].tests.append(Self.columns.map { cell($0) ?? "" })
      default: break
      }
    }
    (self.ecus, text) = (ecus, report.text)
  }

  /// A section for each ECU, then the remarks.
  func lines(width: Int? = nil, paint: (String, Style) -> String) -> [String] {
    var lines: [String] = []
    for ecu in ecus {
      if !lines.isEmpty { lines.append("") }
      let lamp = ecu.lamp.map { "malfunction indicator lamp (MIL) \($0)" }
      let codes = ecu.codes.map { "\($0) stored trouble code\($0 == "1" ? "" : "s")" }
      let title = [ecu.name.isEmpty ? "ECU" : ecu.name, [lamp, codes].compactMap(\.self).joined(separator: ", ")]
      lines.append(paint(Output.oneLine(title.filter { !$0.isEmpty }.joined(separator: ": ")), .bold))
      if !ecu.readiness.isEmpty {
        var table = Table("readiness monitor", "since clearing", "this driving cycle")
        table.rows = ecu.readiness.map { [Cell($0.name), Self.resultCell($0.sinceClear), Self.resultCell($0.thisDrivingCycle)] }
        lines += table.lines(indent: 2, width: width, paint: paint)
      }
      if !ecu.tests.isEmpty {
        var table = Table("monitor", "test", "result", ">value", ">min", ">max", "unit")
        table.rows = ecu.tests.map { row in
          row.enumerated().map { Self.columns[$0.offset] == "result" ? Self.resultCell($0.element) : Cell($0.element) }
        }
        lines += table.lines(indent: 2, width: width, paint: paint)
      }
    }
    return lines + (text.map { $0.split(separator: "\n").map { Output.oneLine(String($0)) } } ?? [])
  }

  private static func resultCell(_ result: String?) -> Cell {
    switch result {
    case "failed"?: Cell("failed", .bad)
    case "incomplete"?, "not run"?: Cell(result ?? "", .bold)
    default: Cell(result ?? "")
    }
  }

  var json: JSON {
    .array(
      ecus.map { ecu in
        let readiness = ecu.readiness.map { monitor -> JSON in
          [
            "name": .string(monitor.name), "sinceClearing": monitor.sinceClear.map(JSON.string) ?? .null,
            "thisDrivingCycle": monitor.thisDrivingCycle.map(JSON.string) ?? .null,
          ]
        }
        let tests = ecu.tests.map { test -> JSON in
          [
            "monitor": JSON(cell: test[0]), "test": JSON(cell: test[1]), "result": JSON(cell: test[2]), "value": JSON(cell: test[3]),
            "min": JSON(cell: test[4]), "max": JSON(cell: test[5]), "unit": JSON(cell: test[6]),
          ]
        }
        return [
          "ecu": ecu.name.isEmpty ? .null : .string(ecu.name), "mil": ecu.lamp.map { .bool($0 == "on") } ?? .null,
          "storedCodes": JSON(cell: ecu.codes ?? ""), "readiness": .array(readiness), "tests": .array(tests),
        ]
      })
  }
}
