// The program: which kinds of peers there are, and what its errors look like. It must never know a protocol.
// Exit codes: 0 ended by a signal, 1 something failed, 2 the command line is wrong.

import ArgumentParser
import Glibc

/// The root command. A further kind is one subcommand file and one line here.
struct VehicleSim: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehiclesim",
    abstract: "Plays the other end of a vehicle's link: adapter and car, without either.",
    discussion: """
      The first line on standard output is the link as the configuration of vehicled takes it, \
      for example serial:/dev/pts/7 or tcp:127.0.0.1:35000. It runs until it gets SIGINT or SIGTERM.
      """,
    subcommands: [
      OBDSimulation.self, LongboardSimulation.self, VESCSimulation.self, CarSimulation.self, MirrorSimulation.self,
      HeartRateSimulation.self, RunningSimulation.self,
      WeatherSimulation.self, ToySimulation.self, TriviaSimulation.self,
    ])
}

@main
enum Program {
  static func main() {
    do {
      var command = try VehicleSim.parseAsRoot()
      try command.run()
    } catch let failure as SimulatorError {
      Console.writeError(failure.description)
      exit(1)
    } catch  where VehicleSim.exitCode(for: error) == .success {
      Console.write(VehicleSim.fullMessage(for: error))
    } catch is CleanExit {
      Console.write(VehicleSim.helpMessage())
    } catch {
      Console.writeError(VehicleSim.message(for: error))
      exit(2)
    }
  }
}

/// Something that failed: what, then how to mend it.
struct SimulatorError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }

  /// A failed call, with the system's word for it.
  init(_ what: String, errno code: Int32) {
    description = "\(what): \(String(cString: strerror(code)))"
  }
}

/// The only place that prints.
enum Console {
  /// A line on standard output, at once.
  static func write(_ text: String) { write(text + "\n", to: 1) }

  /// A line on standard error.
  static func writeError(_ text: String) { write("vehiclesim: \(text)\n", to: 2) }

  private static func write(_ text: String, to descriptor: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 || errno == EINTR else { return }
      rest = rest.dropFirst(max(0, count))
    }
  }
}
