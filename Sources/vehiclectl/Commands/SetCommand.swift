// set: sets a property. The value is checked against the schema before it is sent.

import ArgumentParser
import Protocols
import Varlink

struct SetCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set a property.",
    discussion: """
      Write a boolean as on/off, true/false, yes/no or 1/0, and separate the elements of a list with commas. With --units imperial, give \
      numbers in the unit that "describe --units imperial" shows.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("PROPERTY or DEVICE.PROPERTY.", valueName: "ref"), completion: .writable)
  var reference: String
  @Argument(parsing: .allUnrecognized, help: ArgumentHelp("The value, in the unit that describe shows.", valueName: "value"))
  var values: [String]

  func perform(_ output: Output) throws {
    let units = try common.unitSystem()
    let reference = try Reference(reference)
    let value = try Self.single(try Arguments.positional(values))
    let client = try common.connect(output)
    let (device, property) = try reference.property(of: client)
    let parameters = Contract.Set.Parameters(
      device: device, property: property.name, value: try Self.value(value, for: property, of: device, units))
    let reading = try RequiredPropertyPrompt(device: device, client: client, output: output).run {
      units.converted(try client.call(Contract.Set.self, parameters).reading)
    }
    if output.json { return output.json(["readings": .array([JSON(reading)])]) }
    guard !output.quiet else { return }
    let remark = reading.reason.map { " (\($0))" } ?? ""
    output.line(Output.oneLine("\(reading.reference): \(reading.value == nil ? "unknown" : Format.value(reading))\(remark)"))
  }

  private static func single(_ values: [String]) throws(Failure) -> String {
    guard let value = values.first, values.count == 1 else { throw .usage("set takes one value; quote a value that contains spaces") }
    return value
  }

  static func value(_ text: String, for property: Contract.Property, of device: String, _ units: Units = .metric) throws(Failure) -> Value {
    guard let declared = Property(property) else {
      throw .other("cannot set \(device).\(property.name): unknown type \(property.type); use a newer vehiclectl")
    }
    guard declared.access != .read else { throw .rejected(.readOnly(device: device, property: property.name)) }
    do { return try units.parse(text, for: declared) } catch {
      throw .rejected(.outOfRange(property: property.name, message: error.description))
    }
  }
}
