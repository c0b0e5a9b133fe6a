// Entry point: the subcommands and the format of errors.
// Exit codes: 0 success (ended by SIGINT or SIGTERM), 1 failure, 2 usage error.

import ArgumentParser
import Glibc
import Protocols

/// The root command, with one subcommand per kind of device or service.
struct VehicleSim: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehiclesim",
    abstract: "Simulate the devices and web services that vehicled talks to.",
    discussion: """
      The first line on standard output is the value for the key link in the configuration of vehicled, for example serial:/dev/pts/7 \
      or tcp:127.0.0.1:35000; for web services, it is a URL. The program runs until it receives SIGINT or SIGTERM.
      """,
    subcommands: [
      OBDSimulation.self, BusSimulation.self, DBCOutput.self, LongboardSimulation.self, VESCSimulation.self, CarSimulation.self,
      MirrorSimulation.self,
      HeartRateSimulation.self, FootPodSimulation.self, GPSDSimulation.self,
      WeatherSimulation.self, ToySimulation.self, TriviaSimulation.self, HistorySimulation.self,
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
    } catch let failure as ValueError {
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

/// An error that ends the program with exit code 1.
struct SimulatorError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }

  /// Creates the error of a failed system call, with the text of its errno.
  init(_ failure: String, errno code: Int32) {
    description = "\(failure): \(String(cString: strerror(code)))"
  }
}

/// Standard output and standard error.
enum Console {
  /// Writes a line to standard output, unbuffered.
  static func write(_ text: String) { write(text + "\n", to: 1) }

  /// Writes a line to standard error.
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
