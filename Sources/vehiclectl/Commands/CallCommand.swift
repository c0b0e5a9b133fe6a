// call: calls any Varlink method of the daemon, and prints the parameters of each reply as a line of JSON.

import ArgumentParser
import Protocols
import Varlink

struct CallCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "call", abstract: "Call a Varlink method of the daemon.",
    discussion: "A name without dots is a method of io.vehicled. Example: vehiclectl call Get '{\"references\":[\"rpm\"]}'")

  @OptionGroup var common: CommonOptions
  @Flag(help: "Accept several replies, and print them until interrupted.")
  var more = false
  @Argument(help: "The method, for example Status or io.vehicled.Status.", completion: .list(Contract.methods.map { Self.short($0.name) }))
  var method: String
  @Argument(help: ArgumentHelp("The parameters as a JSON object.", valueName: "json"))
  var parameters = "{}"

  func perform(_ output: Output) throws {
    guard let parameters = JSON(parameters), case .object = parameters else {
      throw Failure.usage("invalid parameters: not a JSON object; write '{\"name\":value}'")
    }
    let client = try common.connect(output)
    if more { Interrupt.catchSignals() }
    try client.callByName(Self.full(method), parameters, more: more, firstReply: common.timeout) { output.json($0) }
  }

  static func full(_ method: String) -> String { method.contains(".") ? method : "\(Contract.interface).\(method)" }
  static func short(_ method: String) -> String { String(method.dropFirst(Contract.interface.count + 1)) }
}
