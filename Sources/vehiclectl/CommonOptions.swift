// The options that every verb takes, and the client they make.

import ArgumentParser
import Protocols

// Beside Protocols' own of the same names, these are meant on a command line.
typealias Argument<Value> = ArgumentParser.Argument<Value>
typealias Option<Value> = ArgumentParser.Option<Value>

struct CommonOptions: ParsableArguments {
  @Flag(help: "Print JSON.")
  var json = false

  @Flag(name: .shortAndLong, help: "Print nothing but what was asked for.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Say more; show the messages to and from the daemon on stderr.")
  var verbose = false

  @Option(
    help: ArgumentHelp("Wait at most this long for an answer, or for the first of many.", valueName: "seconds"),
    transform: CommonOptions.seconds)
  var timeout: Double?

  @Option(help: ArgumentHelp("Colour on a terminal, always or never.", valueName: "auto|always|never"))
  var color = ColorChoice.auto

  @Option(
    help: ArgumentHelp(
      "Show and take values as they are (metric), or in mph, mi, °F, psi, gal; else $\(Units.variable).", valueName: "metric|imperial"))
  var units: Units?

  @Option(
    help: ArgumentHelp("The daemon's socket; else $VEHICLED_SOCKET, else \(Client.defaultSocket).", valueName: "path"), completion: .file())
  var socket: String?

  /// How long to wait for an answer, or for the first of many; the daemon itself gives up on a device after 10 s and says
  /// so, hence a little more.
  var replyTimeout: Double { timeout ?? 15 }

  /// Opens the socket.
  func connect(_ output: Output) throws(Failure) -> Client {
    try Client(path: socketPath, timeout: replyTimeout, trace: verbose ? { output.trace($0, $1) } : nil)
  }

  var socketPath: String { socket ?? Environment["VEHICLED_SOCKET"] ?? Client.defaultSocket }

  /// What people want to see: the option, else the environment's wish.
  func unitSystem(_ environment: (String) -> String? = { Environment[$0] }) throws(Failure) -> Units {
    if let units { return units }
    guard let wish = environment(Units.variable) else { return .metric }
    guard let units = Units(rawValue: wish) else {
      throw .usage("$\(Units.variable) is \"\(wish)\"; set it to metric or imperial, or unset it")
    }
    return units
  }

  private static func seconds(_ text: String) throws -> Double {
    guard let seconds = Double(text), seconds > 0, seconds <= 86_400 else {
      throw ValidationError("\"\(text)\" is no time to wait: give seconds, more than 0 and at most 86400")
    }
    return seconds
  }
}

enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
  case auto, always, never
}
