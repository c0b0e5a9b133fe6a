// toy logout: forgets who is logged in, and with --drop-votes what was to be told to the server still.

import ArgumentParser
import Protocols

struct ToyLogoutCommand: ToyVerb {
  static let configuration = CommandConfiguration(commandName: "logout", abstract: "Log out.")

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Flag(help: "Log out even though votes wait to be sent, and drop them.")
  var dropVotes = false

  func perform(_ output: Output) throws {
    let toy = try open(output)
    report(toy, try toy.run("logout", dropVotes ? ["drop-votes": .bool(true)] : [:]), output)
  }
}
