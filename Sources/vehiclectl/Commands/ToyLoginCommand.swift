// toy login: logs the daemon in to an account on the toy's server.

import ArgumentParser
import Protocols

struct ToyLoginCommand: ToyAccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "login", abstract: "Log in to an account.", usage: usage,
    discussion: "The daemon stays logged in until \"toy logout\". The command prompts for the password, or reads it from stdin.")

  static let usage = "vehiclectl toy login [<options>] <email>"

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @OptionGroup var account: ToyAccount

  var arguments: [String: Value] { [:] }

  func password(_ output: Output) throws(Failure) -> String { try Password().existing() }
}
