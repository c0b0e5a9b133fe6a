// toy logout: logs out, and with --drop-votes deletes votes that were not sent.

import ArgumentParser
import Protocols

struct ToyLogoutCommand: ToySubcommand {
  static let configuration = CommandConfiguration(commandName: "logout", abstract: "Log out.")

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Flag(help: "Delete pending votes, which otherwise prevent the logout.")
  var dropVotes = false

  func perform(_ output: Output) throws {
    let toy = try open(output)
    report(toy, try toy.run("logout", dropVotes ? ["drop-votes": .bool(true)] : [:]), output)
  }
}
