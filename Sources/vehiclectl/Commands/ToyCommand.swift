// toy: commands for the Trivio trivia toy. Without a subcommand, shows the status of the device "toy", or of the only toy.

import ArgumentParser
import Protocols
import Varlink

struct ToyCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "toy", abstract: "Manage the Trivio trivia toy: account, facts, votes and Wi-Fi.",
    discussion: """
      Without a subcommand, show the status of the device that is named toy, or of the only toy.
      The commands prompt for passwords, or read them from stdin; passwords are never arguments.
      """,
    subcommands: [
      ToyRegisterCommand.self, ToyLoginCommand.self, ToyLogoutCommand.self, ToyWhoamiCommand.self, ToyHistoryCommand.self,
      ToyFactCommand.self, ToyVoteCommand.self, ToyVotesCommand.self, ToyWifiCommand.self,
    ])

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions

  func perform(_ output: Output) throws {
    let devices = try common.connect(output).call(Contract.Status.self, .init(device: toy.device)).devices
    let deviceNamedToy = toy.device == nil ? devices.first { $0.name == Toy.kind }?.name : nil
    try StatusCommand.show(try deviceNamedToy ?? Toy.choose(toy.device, among: devices), common, output)
  }
}
