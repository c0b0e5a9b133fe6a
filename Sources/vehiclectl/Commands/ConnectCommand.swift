// connect: opens the links of a device and retries after failures. On a terminal, it follows the connection until the first values arrive.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct ConnectCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "connect", abstract: "Open the links of a device and keep them open.",
    discussion: """
      On a terminal, the command shows each step until the first values arrive, for at most 60 s or --timeout. Without a terminal, \
      or with --quiet, it returns immediately.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The device.", completion: .devices)
  var device: String

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    _ = try client.call(Contract.Connect.self, .init(device: device))
    let follows = Terminal.isTerminal(STDOUT_FILENO) && !output.json && !output.quiet
    if follows { try ConnectionFollower(device: device, common: common, output: output).run() }
    try RequiredPropertyPrompt(device: device, client: client, output: output).run()
    guard !follows else { return }
    output.json ? output.json([:]) : output.note("connecting \(device); see: vehiclectl status \(device)")
  }
}
