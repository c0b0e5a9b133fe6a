// Reads and clears trouble codes with the actions dtc, ecu-codes, freeze-frames and dtc-clear of kind obd.

import Protocols
import Varlink

struct TroubleCodes {
  // The names of the actions.
  static let readAction = "dtc"
  static let clearAction = "dtc-clear"
  static let ecuCodesAction = "ecu-codes"
  static let freezeFramesAction = "freeze-frames"

  let device: String
  let client: Client
  /// The actions of the device.
  private let actions: Set<String>

  init(_ car: Cars.Car, _ client: Client) {
    (device, self.client) = (car.device, client)
    actions = Set(car.schema.actions.map(\.name))
  }

  /// Reads the codes of OBD-II ECUs (SAE J1979).
  func read() throws(Failure) -> TroubleReport { TroubleReport(try client.call(Contract.Call.self, parameters(Self.readAction))) }

  /// Reads the codes of other ECUs with UDS, including the named ones; nil if the device has no such action and no ECU is named.
  func readOtherECUs(_ named: [String], within timeout: Double, _ output: Output) throws -> TroubleReport? {
    guard actions.contains(Self.ecuCodesAction) else {
      if named.isEmpty { return nil }
      throw Failure.rejected(.noSuchAction(device: device, action: Self.ecuCodesAction))
    }
    let arguments = named.isEmpty ? nil : ["ecus": Value.string(named.joined(separator: " "))]
    return TroubleReport(try client.follow(parameters(Self.ecuCodesAction, arguments), within: timeout, output))
  }

  /// Reads the freeze frames; nil if the device has no such action.
  func readFreezeFrames(within timeout: Double, _ output: Output) throws -> TroubleReport? {
    guard actions.contains(Self.freezeFramesAction) else { return nil }
    return TroubleReport(try client.follow(parameters(Self.freezeFramesAction), within: timeout, output))
  }

  /// Reports what clearing would delete, without clearing anything.
  func previewClearing() throws(Failure) -> TroubleReport {
    TroubleReport(try client.call(Contract.Call.self, parameters(Self.clearAction)))
  }

  /// Clears the codes. `timeout` (seconds) applies to each reply.
  func clear(within timeout: Double) throws -> TroubleReport {
    var last = Contract.Call.Result(Report())
    let confirmed = parameters(Self.clearAction, ["confirm": .bool(true)])
    try client.stream(Contract.Call.self, confirmed, firstReply: timeout, laterReplies: timeout) { result in
      if Interrupt.received { throw Failure.other("interrupted while clearing; see the journal for what was cleared") }
      if let result { last = result }
      return true
    }
    return TroubleReport(last)
  }

  private func parameters(_ action: String, _ arguments: [String: Value]? = nil) -> Contract.Call.Parameters {
    .init(device: device, action: action, arguments: arguments)
  }
}

/// The report of a diagnostic action: a table, and remarks as text.
struct TroubleReport {
  let text: String?
  let columns: [String]
  let rows: [[String]]

  init(_ result: Contract.Call.Result) {
    self.init(text: result.text, columns: result.columns ?? [], rows: result.rows?.map(\.cells) ?? [])
  }

  init(text: String?, columns: [String], rows: [[String]]) { (self.text, self.columns, self.rows) = (text, columns, rows) }

  /// Merges two reports. A code that an ECU reports by both SAE J1979 and UDS is listed once, as in SAE J1979.
  func merged(with other: TroubleReport) -> TroubleReport {
    let known = Set(rows.map { $0.prefix(2).joined(separator: " ") })
    let further = other.rows.filter { row in
      row.count < 2 || !known.contains("\(row[0]) \(row[1].split(separator: "-").first ?? "")")
    }
    let all = (rows + further).enumerated().sorted { ($0.element.first ?? "", $0.offset) < ($1.element.first ?? "", $1.offset) }
    let texts = [rows.isEmpty && !further.isEmpty ? text.map { "emissions: \($0)" } : text, other.text].compactMap(\.self)
    return TroubleReport(
      text: texts.isEmpty ? nil : texts.joined(separator: "\n"), columns: columns.isEmpty ? other.columns : columns,
      rows: all.map(\.element))
  }

  /// A table, then the remarks.
  func lines(width: Int? = nil, paint: (String, Style) -> String) -> [String] { table(width: width, paint: paint) + remarks }

  private func table(width: Int?, paint: (String, Style) -> String) -> [String] {
    rows.isEmpty ? [] : Table(titles: columns, rows: rows.map { $0.map { Cell($0) } }).lines(width: width, paint: paint)
  }

  /// A table of codes, then the number of codes in each state if there are several codes, then the remarks.
  func codeLines(width: Int? = nil, paint: (String, Style) -> String) -> [String] {
    table(width: width, paint: paint) + (rows.count > 1 ? [stateCounts] : []) + remarks
  }

  /// The number of codes by state, and by ECU if several ECUs have codes in that state. It can differ from `dtc-count`, which is an ECU's
  /// own count of its stored codes.
  private var stateCounts: String {
    var counts: [(state: String, ecus: [(ecu: String, count: Int)])] = []
    for row in rows {
      for state in cell("state", of: row)?.split(separator: ",").map({ String($0.drop { $0 == " " }) }) ?? [] {
        let index = counts.firstIndex { $0.state == state } ?? counts.count
        if index == counts.count { counts.append((state, [])) }
        let ecu = cell("ecu", of: row) ?? "unknown ECU"
        if let known = counts[index].ecus.firstIndex(where: { $0.ecu == ecu }) {
          counts[index].ecus[known].count += 1
        } else {
          counts[index].ecus.append((ecu, 1))
        }
      }
    }
    let parts = counts.map { state, ecus in
      let total = ecus.reduce(0) { $0 + $1.count }
      return "\(total) \(state)" + (ecus.count > 1 ? " (\(ecus.map { "\($0.ecu): \($0.count)" }.joined(separator: ", ")))" : "")
    }
    return Output.oneLine("\(rows.count) codes: \(parts.joined(separator: ", "))")
  }

  var remarks: [String] { text.map { $0.split(separator: "\n").map { Output.oneLine(String($0)) } } ?? [] }

  /// The cell of a row in this column; nil if empty.
  func cell(_ title: String, of row: [String]) -> String? {
    columns.firstIndex(of: title).flatMap { $0 < row.count && !row[$0].isEmpty ? row[$0] : nil }
  }

  /// The rows with this value in the column `what`.
  private func rows(_ what: String) -> [[String]] { rows.filter { cell("what", of: $0) == what } }

  /// The codes in a report of the action dtc, ecu-codes or dtc-clear.
  var codes: JSON {
    let listsCodes = columns.contains("code")
    return .array(
      (listsCodes ? rows : rows("code")).map { row in
        let states = cell("state", of: row)?.split(separator: ",").map { JSON.string(String($0.drop { $0 == " " })) } ?? []
        return [
          "ecu": text("ecu", of: row), "code": text(listsCodes ? "code" : "value", of: row), "states": .array(states),
          "meaning": text("meaning", of: row),
        ]
      })
  }

  var frames: JSON { .array(rows("freeze frame").map { ["ecu": text("ecu", of: $0), "code": text("value", of: $0)] }) }
  var tests: JSON { .array(rows("readiness monitor").map { ["ecu": text("ecu", of: $0), "name": text("value", of: $0)] }) }
  var results: JSON {
    .array(rows("clearing").map { ["ecu": text("ecu", of: $0), "result": text("value", of: $0), "reason": text("meaning", of: $0)] })
  }
  var note: JSON? { text.map(JSON.string) }

  /// Whether every queried ECU has cleared its codes.
  var isComplete: Bool {
    let results = rows("clearing").map { cell("value", of: $0) }
    return !results.isEmpty && results.allSatisfy { $0 == "cleared" }
  }

  func text(_ title: String, of row: [String]) -> JSON { cell(title, of: row).map(JSON.string) ?? .null }
}
