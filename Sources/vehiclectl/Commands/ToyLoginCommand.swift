// toy login: logs the daemon in to an account on the toy's server.

import ArgumentParser
import Protocols

struct ToyLoginCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "login", abstract: "Log in to an account.", usage: usage,
    discussion: "The daemon stays logged in until \"toy logout\". The command prompts for the password, or reads it from stdin.")

  private static let usage = "vehiclectl toy login [<options>] <email>"

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Argument(help: "The e-mail address of the account.")
  var email: String
  @Argument(parsing: .allUnrecognized, help: .hidden)
  var extra: [String] = []

  func perform(_ output: Output) throws {
    try Self.rejectExtra(extra, Self.usage)
    let toy = try open(output)
    let password = try Password().existing()
    report(toy, try toy.run("login", ["email": .string(email), "password": .string(password)]), output)
  }
}
