// connect: opens the links of a device and retries after failures.

import ArgumentParser
import Protocols
import Varlink

struct ConnectCommand: Subcommand {
  static let configuration = CommandConfiguration(commandName: "connect", abstract: "Open the links of a device and keep them open.")

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    _ = try client.call(Contract.Connect.self, .init(device: device))
    try FirstUse(device: device, client: client, output: output).run()
    output.json ? output.json([:]) : output.note("connecting \(device); see: vehiclectl status \(device)")
  }
}
