// disconnect: has the daemon close the links of a device and leave them closed.

import ArgumentParser
import Protocols

struct DisconnectCommand: Verb {
  static let configuration = CommandConfiguration(commandName: "disconnect", abstract: "Close the links of a device and leave them closed.")

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    _ = try client.call(Contract.Disconnect.self, .init(device: device))
    // A car that could not be stopped before, say.
    if let fault = try? client.call(Contract.Status.self, .init(device: device)).devices.first?.fault { output.note("\(device): \(fault)") }
    output.json ? output.json([:]) : output.note("\(device) is disconnected until \"vehiclectl connect \(device)\"")
  }
}
