// toy register: creates an account on the toy's server.

import ArgumentParser
import Protocols

struct ToyRegisterCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "register", abstract: "Create an account and log in.", usage: usage,
    discussion: """
      The command prompts for the password twice, or reads it from stdin. Choose one that you use nowhere else: the original server \
      stores it unencrypted.
      """)

  private static let usage = "vehiclectl toy register [<options>] <name> <email>"

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Argument(help: "Your name.")
  var name: String
  @Argument(help: "Your e-mail address.")
  var email: String
  @Argument(parsing: .allUnrecognized, help: .hidden)
  var extra: [String] = []

  func perform(_ output: Output) throws {
    try Self.rejectExtra(extra, Self.usage)
    let toy = try open(output)
    if Prompt.isInteractive { output.note("the original server stores passwords unencrypted; choose one that you use nowhere else") }
    let password = try Password().new(output.note)
    let arguments: [String: Value] = ["name": .string(name), "email": .string(email), "password": .string(password)]
    report(toy, try toy.run("register", arguments), output)
  }
}
