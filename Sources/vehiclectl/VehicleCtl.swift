// vehiclectl: the command line client of vehicled's control socket. It knows of devices only what the daemon describes; only setup knows kinds.
// One command per file in Commands/; exit codes are in Failure.swift.

import ArgumentParser
import CLinux
import Glibc
import Protocols
import Varlink

@main
struct VehicleCtl: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehiclectl",
    abstract: "Show and control the vehicles and other devices that vehicled manages.",
    discussion: """
      The name of a property or an action is DEVICE.NAME, or NAME if only one device has it.
      Exit status: 0 success, 1 failure, 2 usage error, 3 daemon not running, 4 no such device, property or action, \
      5 not connected, 6 timeout, 7 permission denied.
      """,
    version: version,
    groupedSubcommands: [
      CommandGroup(
        name: "Value",
        subcommands: [
          StatusCommand.self, GetCommand.self, SetCommand.self, WatchCommand.self, DescribeCommand.self, MetricsCommand.self,
        ]),
      CommandGroup(
        name: "Device",
        subcommands: [
          SetupCommand.self, ScanCommand.self, ConnectCommand.self, DisconnectCommand.self, DoCommand.self, WebPageCommand.self,
          RecordCommand.self,
        ]),
      CommandGroup(name: "Driving and RC car", subcommands: [DriveCommand.self, CarCommand.self]),
      CommandGroup(name: "Vehicle diagnostics", subcommands: [DtcCommand.self, MonitorsCommand.self]),
      CommandGroup(name: "Toy", subcommands: [ToyCommand.self]),
      CommandGroup(
        name: "Maintenance",
        subcommands: [
          DoctorCommand.self, LogCommand.self, LogLevelCommand.self, BugreportCommand.self, ImportCommand.self, ReloadCommand.self,
          CallCommand.self, VersionCommand.self, CompletionsCommand.self,
        ]),
    ],
    defaultSubcommand: StatusCommand.self)

  static func main() {
    signal(SIGPIPE, SIG_IGN)
    Descriptors.fillStandard()
    do {
      var command = try command(of: Array(CommandLine.arguments.dropFirst()))
      try command.run()
    } catch let code as ExitCode {
      Glibc.exit(code.rawValue)
    } catch {
      guard !exitCode(for: error).isSuccess else {
        Output.write(fullMessage(for: error) + "\n", to: STDOUT_FILENO)  // the help
        Glibc.exit(0)
      }
      let output = Output(json: CommandLine.arguments.contains("--json"))
      output.fail(.usage("\(message(for: error)); see \"vehiclectl --help\""))
      Glibc.exit(2)
    }
  }

  /// Returns the command for these arguments. Parses the one subcommand first; the whole tree, which costs milliseconds, is parsed only
  /// for help, completion and errors.
  static func command(of given: [String]) throws -> any ParsableCommand {
    let commands = configuration.subcommands
    let arguments = Arguments.commandFirst(given, commands: commands.flatMap { $0.configuration.names } + ["help"])
    if arguments.first == "help" { return try parseAsRoot(Arguments.withoutOptions(arguments)) }
    guard let name = arguments.first, let subcommand = commands.first(where: { $0.configuration.names.contains(name) }) else {
      return try parseAsRoot(arguments)
    }
    let inner = subcommand.configuration.subcommands
    let rest = Arguments.commandFirst(Array(arguments.dropFirst()), commands: inner.flatMap { $0.configuration.names })
    if let name = rest.first, let command = try? (inner.first { $0.configuration.names.contains(name) }?.parse(Array(rest.dropFirst()))) {
      return command
    }
    if let command = try? subcommand.parse(rest) { return command }
    return try parseAsRoot(arguments.prefix(1) + rest)
  }
}

extension CommandConfiguration {
  /// The name of the command and its aliases.
  fileprivate var names: [String] { [commandName].compactMap(\.self) + aliases }
}

/// A subcommand. Its `run` turns failures into one line on stderr and an exit code.
protocol Subcommand: ParsableCommand {
  var common: CommonOptions { get }
  mutating func perform(_ output: Output) throws
}

extension Subcommand {
  mutating func run() throws {
    let output = Output(common)
    do {
      try perform(output)
    } catch let failure as Failure {
      output.fail(failure)
      throw ExitCode(failure.exitCode)
    } catch let error as ContractError {
      output.fail(.rejected(error))
      throw ExitCode(error.exitCode)
    }
  }
}
