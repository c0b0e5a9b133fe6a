// The trouble codes of a device, and what clearing them takes away, as its actions report them: which device is meant, what a person
// sees, what a program gets. Facts: the actions dtc and dtc-clear of kind obd, as "vehiclectl describe" lists them.

import Protocols

struct TroubleCodes {
  static let reading = "dtc"
  static let clearing = "dtc-clear"

  let device: String
  let client: Client

  /// Of the device of this name, or of the only one that has codes.
  init(of named: String?, _ client: Client) throws(Failure) {
    let reference = Reference(device: named, name: Self.reading)
    (device, self.client) = (try reference.action(in: try reference.schemas(client)).device, client)
  }

  func read() throws(Failure) -> TroubleReport { TroubleReport(try client.call(Contract.Call.self, parameters(Self.reading))) }

  /// What clearing would take away.
  func loss() throws(Failure) -> TroubleReport { TroubleReport(try client.call(Contract.Call.self, parameters(Self.clearing))) }

  /// Clears; each half of it may take so many seconds.
  func clear(within patience: Double) throws -> TroubleReport {
    var last = Contract.Call.Result(Report())
    let confirmed = parameters(Self.clearing, ["confirm": .bool(true)])
    try client.stream(Contract.Call.self, confirmed, first: patience, silence: patience) { result in
      if Interrupt.came { throw Failure.other("interrupted; the journal says whether anything was cleared") }
      if let result { last = result }
      return true
    }
    return TroubleReport(last)
  }

  private func parameters(_ action: String, _ arguments: [String: Value]? = nil) -> Contract.Call.Parameters {
    .init(device: device, action: action, arguments: arguments)
  }
}

/// What such an action told.
struct TroubleReport {
  let text: String?
  let columns: [String]
  let rows: [[String]]

  init(_ result: Contract.Call.Result) {
    (text, columns, rows) = (result.text, result.columns ?? [], result.rows?.map(\.cells) ?? [])
  }

  /// A table, and the remarks below it.
  func lines(width: Int? = nil, paint: (String, Style) -> String) -> [String] {
    let table = rows.isEmpty ? [] : Table(titles: columns, rows: rows.map { $0.map { Cell($0) } }).lines(width: width, paint: paint)
    return table + remarks
  }

  var remarks: [String] { text.map { $0.split(separator: "\n").map { Output.oneLine(String($0)) } } ?? [] }

  /// The cell of a row under this title; nil where it is empty.
  private func cell(_ title: String, of row: [String]) -> String? {
    columns.firstIndex(of: title).flatMap { $0 < row.count && !row[$0].isEmpty ? row[$0] : nil }
  }

  /// The rows that tell of this.
  private func rows(_ what: String) -> [[String]] { rows.filter { cell("what", of: $0) == what } }

  /// The codes that a reading lists, or those among what is lost or left.
  var codes: JSON {
    let isReading = columns.contains("code")
    return .array(
      (isReading ? rows : rows("code")).map { row in
        let states = cell("state", of: row)?.split(separator: ",").map { JSON.string(String($0.drop { $0 == " " })) } ?? []
        return [
          "ecu": text("ecu", of: row), "code": text(isReading ? "code" : "value", of: row), "states": .array(states),
          "meaning": text("meaning", of: row),
        ]
      })
  }

  var frames: JSON { .array(rows("frozen frame").map { ["ecu": text("ecu", of: $0), "code": text("value", of: $0)] }) }
  var tests: JSON { .array(rows("self-test").map { ["ecu": text("ecu", of: $0), "name": text("value", of: $0)] }) }
  var results: JSON {
    .array(rows("clearing").map { ["ecu": text("ecu", of: $0), "result": text("value", of: $0), "reason": text("meaning", of: $0)] })
  }
  var note: JSON? { text.map(JSON.string) }

  /// Every controller that was asked has cleared.
  var isComplete: Bool {
    let results = rows("clearing").map { cell("value", of: $0) }
    return !results.isEmpty && results.allSatisfy { $0 == "cleared" }
  }

  private func text(_ title: String, of row: [String]) -> JSON { cell(title, of: row).map(JSON.string) ?? .null }
}
