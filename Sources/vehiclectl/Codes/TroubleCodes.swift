// The trouble codes of a device, and what clearing them takes away, as its actions report them: which device is meant, what a person
// sees, what a program gets. Facts: the actions dtc, ecu-codes, freeze-frames and dtc-clear of kind obd, as "vehiclectl describe" lists
// them.

import Protocols

struct TroubleCodes {
  static let reading = "dtc"
  static let clearing = "dtc-clear"
  static let ofECUs = "ecu-codes"
  static let freezing = "freeze-frames"

  let device: String
  let client: Client
  /// What the device can do.
  private let actions: Set<String>

  /// Of the device of this name, or of the only one that has codes.
  init(of named: String?, _ client: Client) throws(Failure) {
    let reference = Reference(device: named, name: Self.reading)
    let schemas = try reference.schemas(client)
    (device, self.client) = (try reference.action(in: schemas).device, client)
    actions = Set(schemas.first { [device] in $0.device == device }?.actions.map(\.name) ?? [])
  }

  /// The codes of the emission standard.
  func read() throws(Failure) -> TroubleReport { TroubleReport(try client.call(Contract.Call.self, parameters(Self.reading))) }

  /// The codes of ECUs beyond emissions, these among them; nil where the device reads none.
  func ecus(_ named: [String], within timeout: Double, _ output: Output) throws -> TroubleReport? {
    guard actions.contains(Self.ofECUs) else {
      if named.isEmpty { return nil }
      throw Failure.refused(.noSuchAction(device: device, action: Self.ofECUs))
    }
    let arguments = named.isEmpty ? nil : ["ecus": Value.string(named.joined(separator: " "))]
    return TroubleReport(try client.follow(parameters(Self.ofECUs, arguments), within: timeout, output))
  }

  /// What was measured when codes were stored; nil where the device does not tell.
  func frames(within timeout: Double, _ output: Output) throws -> TroubleReport? {
    guard actions.contains(Self.freezing) else { return nil }
    return TroubleReport(try client.follow(parameters(Self.freezing), within: timeout, output))
  }

  /// What clearing would take away.
  func loss() throws(Failure) -> TroubleReport { TroubleReport(try client.call(Contract.Call.self, parameters(Self.clearing))) }

  /// Clears; each half of it may take so many seconds.
  func clear(within timeout: Double) throws -> TroubleReport {
    var last = Contract.Call.Result(Report())
    let confirmed = parameters(Self.clearing, ["confirm": .bool(true)])
    try client.stream(Contract.Call.self, confirmed, first: timeout, silence: timeout) { result in
      if Interrupt.received { throw Failure.other("interrupted; the journal says whether anything was cleared") }
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
    self.init(text: result.text, columns: result.columns ?? [], rows: result.rows?.map(\.cells) ?? [])
  }

  init(text: String?, columns: [String], rows: [[String]]) { (self.text, self.columns, self.rows) = (text, columns, rows) }

  /// Both in one. A code that an ECU tells in both ways stands there once, as the emission standard has it.
  func with(_ other: TroubleReport) -> TroubleReport {
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

  /// A table, and the remarks below it.
  func lines(width: Int? = nil, paint: (String, Style) -> String) -> [String] {
    let table = rows.isEmpty ? [] : Table(titles: columns, rows: rows.map { $0.map { Cell($0) } }).lines(width: width, paint: paint)
    return table + remarks
  }

  var remarks: [String] { text.map { $0.split(separator: "\n").map { Output.oneLine(String($0)) } } ?? [] }

  /// The cell of a row under this title; nil where it is empty.
  func cell(_ title: String, of row: [String]) -> String? {
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

  var frames: JSON { .array(rows("freeze frame").map { ["ecu": text("ecu", of: $0), "code": text("value", of: $0)] }) }
  var tests: JSON { .array(rows("readiness monitor").map { ["ecu": text("ecu", of: $0), "name": text("value", of: $0)] }) }
  var results: JSON {
    .array(rows("clearing").map { ["ecu": text("ecu", of: $0), "result": text("value", of: $0), "reason": text("meaning", of: $0)] })
  }
  var note: JSON? { text.map(JSON.string) }

  /// Every controller that was asked has cleared.
  var isComplete: Bool {
    let results = rows("clearing").map { cell("value", of: $0) }
    return !results.isEmpty && results.allSatisfy { $0 == "cleared" }
  }

  func text(_ title: String, of row: [String]) -> JSON { cell(title, of: row).map(JSON.string) ?? .null }
}
