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
  /// The state of the device.
  let state: String
  let client: Client
  /// The actions of the device.
  private let actions: Set<String>

  /// Selects the device with this name, or the only one that can read trouble codes.
  init(of name: String?, _ client: Client) throws(Failure) {
    let reference = Reference(device: name, name: Self.readAction)
    let schemas = try reference.schemas(client)
    let device = try reference.action(in: schemas).device
    self.init(
      device, schemas.first { $0.device == device }, try client.call(Contract.Status.self, .init(device: device)).devices.first, client)
  }

  private init(_ device: String, _ schema: Contract.Schema?, _ status: Contract.Device?, _ client: Client) {
    (self.device, state, self.client) = (device, status?.state ?? "", client)
    actions = Set(schema?.actions.map(\.name) ?? [])
  }

  /// All devices that can read trouble codes. Throws if there are none.
  static func all(_ client: Client) throws(Failure) -> [TroubleCodes] {
    let schemas = try client.call(Contract.Describe.self, .init(device: nil)).schemas
    let devices = try client.call(Contract.Status.self, .init(device: nil)).devices
    let all = schemas.filter { $0.actions.contains { $0.name == readAction } }
    guard !all.isEmpty else { throw .noSuchAction(readAction) }
    return all.map { schema in TroubleCodes(schema.device, schema, devices.first { $0.name == schema.device }, client) }
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

/// The report of one of these actions.
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
  func lines(width: Int? = nil, paint: (String, Style) -> String) -> [String] {
    let table = rows.isEmpty ? [] : Table(titles: columns, rows: rows.map { $0.map { Cell($0) } }).lines(width: width, paint: paint)
    return table + remarks
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

  /// Whether every queried ECU has cleared its codes.
  var isComplete: Bool {
    let results = rows("clearing").map { cell("value", of: $0) }
    return !results.isEmpty && results.allSatisfy { $0 == "cleared" }
  }

  func text(_ title: String, of row: [String]) -> JSON { cell(title, of: row).map(JSON.string) ?? .null }
}
