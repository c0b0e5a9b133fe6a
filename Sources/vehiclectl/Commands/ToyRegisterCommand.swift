// toy register: creates an account on the toy's server.

import ArgumentParser
import Protocols

struct ToyRegisterCommand: ToyAccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "register", abstract: "Create an account and log in.", usage: usage,
    discussion: """
      The command prompts for the password twice, or reads it from stdin. Choose one that you use nowhere else: the original server \
      stores it unencrypted.
      """)

  static let usage = "vehiclectl toy register [<options>] <name> <email>"

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Argument(help: "Your name.")
  var name: String
  @OptionGroup var account: ToyAccount

  var arguments: [String: Value] { ["name": .string(name)] }

  func password(_ output: Output) throws(Failure) -> String {
    if Prompt.isInteractive { output.note("the original server stores passwords unencrypted; choose one that you use nowhere else") }
    return try Password().new(output.note)
  }
}
