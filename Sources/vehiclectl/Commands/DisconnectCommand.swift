// disconnect: has the daemon close the links of a device and leave them closed.

import ArgumentParser
import Protocols

struct DisconnectCommand: Verb {
  static let configuration = CommandConfiguration(commandName: "disconnect", abstract: "Close the links of a device and leave them closed.")

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String

  func perform(_ output: Output) throws {
    _ = try common.connect(output).call(Contract.Disconnect.self, .init(device: device))
    output.json ? output.json([:]) : output.note("\(device) is disconnected until \"vehiclectl connect \(device)\"")
  }
}
