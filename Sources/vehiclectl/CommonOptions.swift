// The options that every command takes, and the connection to the daemon that they select.

import ArgumentParser
import Protocols

// Protocols has types of the same names.
typealias Argument<Value> = ArgumentParser.Argument<Value>
typealias Option<Value> = ArgumentParser.Option<Value>

struct CommonOptions: ParsableArguments {
  @Flag(help: "Print JSON.")
  var json = false

  @Flag(name: .shortAndLong, help: "Print only the result.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Print more detail. Also print the messages exchanged with the daemon to stderr.")
  var verbose = false

  @Option(
    help: ArgumentHelp("Give up if the first reply takes longer than this many seconds (default: 15).", valueName: "seconds"),
    transform: CommonOptions.seconds)
  var timeout: Double?

  @Option(help: ArgumentHelp("When to use colour.", valueName: "auto|always|never"))
  var color = ColorChoice.auto

  @Option(
    help: ArgumentHelp(
      "Print metric or US customary units: mph, mi, °F, psi, US gal (default: $\(Units.variable), or metric).",
      valueName: "metric|imperial"))
  var units: Units?

  @Option(
    help: ArgumentHelp("Connect to this socket (default: $VEHICLED_SOCKET, or \(Client.defaultSocket)).", valueName: "path"),
    completion: .file())
  var socket: String?

  /// Seconds to wait for a (first) reply. The default exceeds the 10 s after which the daemon reports that a device does not respond.
  var replyTimeout: Double { timeout ?? 15 }

  /// Opens the socket.
  func connect(_ output: Output) throws(Failure) -> Client {
    try Client(path: socketPath, timeout: replyTimeout, trace: verbose ? { output.trace($0, $1) } : nil)
  }

  var socketPath: String { socket ?? Environment["VEHICLED_SOCKET"] ?? Client.defaultSocket }

  /// The unit system: the option, else the environment variable, else metric.
  func unitSystem(_ environment: (String) -> String? = { Environment[$0] }) throws(Failure) -> Units {
    if let units { return units }
    guard let name = environment(Units.variable) else { return .metric }
    guard let units = Units(rawValue: name) else {
      throw .usage("invalid $\(Units.variable): \"\(name)\" is not a unit system; set it to metric or imperial, or unset it")
    }
    return units
  }

  private static func seconds(_ text: String) throws -> Double {
    guard let seconds = Double(text), seconds > 0, seconds <= 86_400 else {
      throw ValidationError("\"\(text)\" is not a timeout; use seconds, more than 0 and at most 86400")
    }
    return seconds
  }
}

enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
  case auto, always, never
}
