// toy logout: logs out of the account; with --delete-votes, also deletes pending votes.

import ArgumentParser
import Protocols

struct ToyLogoutCommand: ToySubcommand {
  static let configuration = CommandConfiguration(commandName: "logout", abstract: "Log out of the account.")

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Flag(help: "Delete pending votes, which otherwise prevent the logout.")
  var deleteVotes = false
  /// The old name of --delete-votes.
  @Flag(help: .hidden)
  var dropVotes = false

  func validate() throws {
    if dropVotes { throw ValidationError("--drop-votes was renamed; use --delete-votes") }
  }

  func perform(_ output: Output) throws {
    let toy = try open(output)
    report(toy, try toy.run("logout", deleteVotes ? ["delete-votes": .bool(true)] : [:]), output)
  }
}
