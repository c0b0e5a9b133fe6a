// connect: has the daemon open the links of a device, now and again after failures.

import ArgumentParser
import Protocols

struct ConnectCommand: Verb {
  static let configuration = CommandConfiguration(commandName: "connect", abstract: "Open the links of a device.")

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    _ = try client.call(Contract.Connect.self, .init(device: device))
    try FirstUse(device: device, client: client, output: output).run()
    output.json ? output.json([:]) : output.note("connecting \(device); \"vehiclectl status \(device)\" shows how it goes")
  }
}
