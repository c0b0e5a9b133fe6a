// describe: the properties and actions of devices; with --json, the schemas as the daemon sends them.

import ArgumentParser
import Protocols
import Varlink

struct DescribeCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "describe", abstract: "List the properties and actions of devices.")

  @OptionGroup var common: CommonOptions
  @Argument(help: "Show only this device.", completion: .devices)
  var device: String?

  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    let client = try common.connect(output)
    if output.json {
      let parameters: JSON = .members(["device": device.map(JSON.string)])
      return try client.callByName(Contract.Describe.name, parameters, more: false) { output.json(units.converted($0)) }
    }
    let schemas = try client.call(Contract.Describe.self, .init(device: device)).schemas.map(units.converted)
    if schemas.isEmpty { output.note("no devices are configured; add one: vehiclectl setup") }
    for (position, schema) in schemas.enumerated() {
      if position > 0 { output.line("") }
      output.lines(Self.lines(schema, width: Output.width, paint: output.paint))
    }
  }

  static func lines(_ schema: Contract.Schema, width: Int? = nil, paint: (String, Style) -> String) -> [String] {
    var lines = [paint(Output.oneLine(schema.device), .bold) + Output.oneLine(" (\(schema.kind))")]
    var properties = Table("property", "type", "unit", "range", "access", "")
    for property in schema.properties {
      let access = property.motion ? "lease" : property.writable ? "set" : "read"
      properties.rows.append([
        Cell(property.name), Cell(property.type), Cell(property.unit ?? ""), Cell(Format.range(property)), Cell(access),
        Cell(property.help),
      ])
    }
    if !properties.rows.isEmpty { lines += properties.lines(indent: 2, width: width, paint: paint) }
    var actions = Table("action", "", "")
    for action in schema.actions {
      actions.rows.append([Cell(Format.usage(action)), Cell(action.motion ? "lease" : "do"), Cell(action.help)])
      for argument in action.arguments {
        actions.rows.append([Cell("  \(argument.name.uppercased())"), Cell(argument.type), Cell(argument.help)])
      }
    }
    if !actions.rows.isEmpty { lines += [""] + actions.lines(indent: 2, width: width, paint: paint) }
    return lines
  }
}
