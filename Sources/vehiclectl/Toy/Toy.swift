// Which toy is meant, and calls of its actions. Owns that no password is shown by --verbose; must never guess between two toys.
// Facts: the actions of kind toy, as "vehiclectl describe" lists them.

import ArgumentParser
import Protocols

struct Toy {
  static let kind = "toy"
  /// The arguments that nobody shows.
  static let secrets: Set<String> = ["password"]
  /// What makes a toy, as it stands in the configuration.
  static let example = ["[device.toy]", "kind = \"toy\""]

  let device: String
  let client: Client

  /// The toy of this name, or the only one there is.
  init(_ named: String?, _ client: Client) throws(Failure) {
    self.client = client
    client.secrets = Self.secrets
    device = try Self.choose(named, among: client.call(Contract.Status.self, .init(device: named)).devices)
  }

  /// The name of the toy that is meant.
  static func choose(_ named: String?, among devices: [Contract.Device]) throws(Failure) -> String {
    let toys = devices.filter { $0.kind == kind }.map(\.name)
    if let named {
      guard let other = devices.first(where: { $0.name == named }) else { throw .refused(.noSuchDevice(device: named)) }
      guard toys.contains(named) else {
        throw .usage("\(named) is no toy but of the kind \(other.kind); \"vehiclectl status\" lists the devices")
      }
      return named
    }
    guard let toy = toys.first else {
      throw .noSuchDevice(
        "no toy is configured; write these lines into /etc/vehicled/vehicled.toml, then \"vehiclectl reload\":\n"
          + example.map { "    \($0)" }.joined(separator: "\n"))
    }
    guard toys.count == 1 else { throw .usage("there are several toys: \(toys.joined(separator: ", ")); say which with --device NAME") }
    return toy
  }

  /// Runs an action that answers once.
  func run(_ action: String, _ arguments: [String: Value] = [:]) throws(Failure) -> Contract.Call.Result {
    try client.call(Contract.Call.self, parameters(action, arguments))
  }

  func parameters(_ action: String, _ arguments: [String: Value]) -> Contract.Call.Parameters {
    .init(device: device, action: action, arguments: arguments.isEmpty ? nil : arguments)
  }
}

/// The option of every verb of the toy.
struct ToyOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The toy, where there are several.", valueName: "name"), completion: .toys)
  var device: String?
}

/// A verb of the toy.
protocol ToyVerb: Verb {
  var toy: ToyOptions { get }
}

extension ToyVerb {
  func open(_ output: Output) throws(Failure) -> Toy { try Toy(toy.device, try common.connect(output)) }

  /// What the toy said of what was done.
  func report(_ toy: Toy, _ result: Contract.Call.Result, _ output: Output) {
    if output.json { return output.json(.members(["device": .string(toy.device), "text": result.text.map(JSON.string)])) }
    if let text = result.text, !output.quiet { output.line(Output.oneLine(text)) }
  }

  /// What was given beyond what the verb takes: mostly a password, which is not repeated here either.
  static func rejectExtra(_ extra: [String], _ usage: String) throws(Failure) {
    guard let first = extra.first else { return }
    let name = first.prefix { $0 != "=" }
    if first.hasPrefix("-"), !["--password", "-p"].contains(name) { throw .usage("there is no option \"\(name)\"; give: \(usage)") }
    throw .usage(
      "too many arguments; give: \(usage). A password is no argument: anybody can read the command line while it runs, and the shell "
        + "keeps it. It is asked for, or read from stdin")
  }
}
