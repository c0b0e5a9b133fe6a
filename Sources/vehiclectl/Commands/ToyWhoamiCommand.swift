// toy whoami: shows the account that the daemon is logged in to.

import ArgumentParser
import Protocols
import Varlink

struct ToyWhoamiCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "whoami", abstract: "Show the account that the daemon is logged in to.",
    discussion: "With --json: {\"id\",\"name\",\"email\",\"facts\",\"note\"}.")

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions

  func perform(_ output: Output) throws {
    let result = try open(output).run("whoami")
    if output.json { return output.json(Self.json(result)) }
    if let text = result.text { output.note(Output.oneLine(text)) }
    output.lines(Self.lines(result, paint: output.paint))
  }

  /// One line per column of the report.
  static func lines(_ result: Contract.Call.Result, paint: (String, Style) -> String) -> [String] {
    Table(titles: [], rows: cells(result).map { [Cell($0, .bold), Cell($1)] }).lines(paint: paint)
  }

  /// The columns as JSON members. The members `id` and `facts` are numbers.
  static func json(_ result: Contract.Call.Result) -> JSON {
    var values: [String: JSON] = [:]
    for (column, cell) in cells(result) {
      let isNumber = ["id", "facts"].contains(column)
      values[column] = isNumber ? Int(cell).map(JSON.int) ?? .null : .string(cell)
    }
    return .members([
      "id": values["id"] ?? .null, "name": values["name"] ?? .null, "email": values["email"] ?? .null,
      "facts": values["facts"] ?? .null, "note": result.text.map(JSON.string),
    ])
  }

  private static func cells(_ result: Contract.Call.Result) -> [(String, String)] {
    Array(zip(result.columns ?? [], result.rows?.first?.cells ?? []))
  }
}
