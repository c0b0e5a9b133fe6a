// call: any method of the socket by hand; prints the parameters of each reply as a line of JSON.

import ArgumentParser
import Protocols

struct CallCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "call", abstract: "Call a method of the socket.",
    discussion: "Example: vehiclectl call Get '{\"references\":[\"rpm\"]}'. A name without dots belongs to io.vehicled.")

  @OptionGroup var common: CommonOptions
  @Flag(help: "Take several replies, until interrupted.")
  var more = false
  @Argument(help: "The method: Status, or io.vehicled.Status.", completion: .list(Contract.methods.map { Self.short($0.name) }))
  var method: String
  @Argument(help: ArgumentHelp("Its parameters, an object.", valueName: "json"))
  var parameters = "{}"

  func perform(_ output: Output) throws {
    guard let parameters = JSON(parameters), case .object = parameters else {
      throw Failure.usage("the parameters are no JSON object; give them as '{\"name\":value}'")
    }
    let client = try common.connect(output)
    if more { Interrupt.catchSignals() }
    try client.raw(Self.full(method), parameters, more: more, first: common.timeout) { output.json($0) }
  }

  static func full(_ method: String) -> String { method.contains(".") ? method : "\(Contract.interface).\(method)" }
  static func short(_ method: String) -> String { String(method.dropFirst(Contract.interface.count + 1)) }
}
