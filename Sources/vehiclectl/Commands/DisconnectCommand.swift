// disconnect: closes the links of a device. They stay closed until `connect`.

import ArgumentParser
import Protocols
import Varlink

struct DisconnectCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "disconnect", abstract: "Close the links of a device and keep them closed.")

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    _ = try client.call(Contract.Disconnect.self, .init(device: device))
    // Show a fault: for example, the car may not have confirmed the stop.
    if let fault = try? client.call(Contract.Status.self, .init(device: device)).devices.first?.fault { output.note("\(device): \(fault)") }
    output.json ? output.json([:]) : output.note("disconnected \(device); to undo: vehiclectl connect \(device)")
  }
}
