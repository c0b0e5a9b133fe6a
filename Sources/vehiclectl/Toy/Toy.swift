// Selects the toy and calls its actions. The output of --verbose hides passwords. If more than one toy is configured, the user must name
// one.

import ArgumentParser
import Protocols
import Varlink

struct Toy {
  static let kind = "toy"
  /// The arguments whose values are never shown.
  static let secrets: Set<String> = ["password"]
  /// An example configuration of a toy.
  static let example = ["[device.toy]", "kind = \"toy\""]

  let device: String
  let client: Client

  /// Selects the toy with this name, or the only one.
  init(_ named: String?, _ client: Client) throws(Failure) {
    self.client = client
    client.secrets = Self.secrets
    device = try Self.choose(named, among: client.call(Contract.Status.self, .init(device: named)).devices)
  }

  /// The name of the selected toy.
  static func choose(_ named: String?, among devices: [Contract.Device]) throws(Failure) -> String {
    let toys = devices.filter { $0.kind == kind }.map(\.name)
    if let named {
      guard let other = devices.first(where: { $0.name == named }) else { throw .rejected(.noSuchDevice(device: named)) }
      guard toys.contains(named) else {
        throw .usage("\(named) is not a toy: its kind is \(other.kind); list devices: vehiclectl status")
      }
      return named
    }
    guard let toy = toys.first else {
      throw .noSuchDevice(
        "no toy is configured; add these lines to /etc/vehicled/vehicled.toml, then run \"vehiclectl reload\":\n"
          + example.map { "    \($0)" }.joined(separator: "\n"))
    }
    guard toys.count == 1 else {
      throw .usage("more than one toy is configured: \(toys.joined(separator: ", ")); select one with --device NAME")
    }
    return toy
  }

  /// Runs an action that replies once.
  func run(_ action: String, _ arguments: [String: Value] = [:]) throws(Failure) -> Contract.Call.Result {
    try client.call(Contract.Call.self, parameters(action, arguments))
  }

  func parameters(_ action: String, _ arguments: [String: Value]) -> Contract.Call.Parameters {
    .init(device: device, action: action, arguments: arguments.isEmpty ? nil : arguments)
  }
}

/// The option of all toy commands.
struct ToyOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The toy; required if more than one toy is configured.", valueName: "name"), completion: .toys)
  var device: String?
}

/// The e-mail address of an account, as the last argument.
struct ToyAccount: ParsableArguments {
  @Argument(help: "The e-mail address of the account.")
  var email: String
  @Argument(parsing: .allUnrecognized, help: .hidden)
  var extra: [String] = []
}

/// A toy command that sends a password, which is never an argument.
protocol ToyAccountCommand: ToySubcommand {
  static var usage: String { get }
  var account: ToyAccount { get }
  /// The arguments of the action in addition to the address and the password.
  var arguments: [String: Value] { get }
  func password(_ output: Output) throws(Failure) -> String
}

extension ToyAccountCommand {
  func perform(_ output: Output) throws {
    try Self.rejectExtra(account.extra, Self.usage)
    let toy = try open(output)
    let credentials = ["email": Value.string(account.email), "password": .string(try password(output))]
    report(toy, try toy.run(Self.configuration.commandName ?? "", credentials.merging(arguments) { $1 }), output)
  }
}

/// A toy command.
protocol ToySubcommand: Subcommand {
  var toy: ToyOptions { get }
}

extension ToySubcommand {
  func open(_ output: Output) throws(Failure) -> Toy { try Toy(toy.device, try common.connect(output)) }

  /// Prints the text of the result.
  func report(_ toy: Toy, _ result: Contract.Call.Result, _ output: Output) {
    if output.json { return output.json(.members(["device": .string(toy.device), "text": result.text.map(JSON.string)])) }
    if let text = result.text, !output.quiet { output.line(Output.oneLine(text)) }
  }

  /// Fails if there are extra arguments. The message does not repeat them, because one may be a password.
  static func rejectExtra(_ extra: [String], _ usage: String) throws(Failure) {
    guard let first = extra.first else { return }
    let name = first.prefix { $0 != "=" }
    if first.hasPrefix("-"), !["--password", "-p"].contains(name) { throw .usage("unknown option \"\(name)\"; usage: \(usage)") }
    throw .usage(
      "too many arguments; usage: \(usage); a password cannot be an argument, because other users and the shell history would see it: "
        + "type it at the prompt, or write it to stdin")
  }
}
