// vehiclectl: the person's and the script's hand on the daemon. It is a client of the control socket and of nothing else;
// what it knows of devices it asks for. One verb a file in Commands/; exit codes: see Failure.swift.

import ArgumentParser
import CLinux
import Glibc
import Protocols

@main
struct VehicleCtl: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehiclectl",
    abstract: "Shows and controls the vehicles that the daemon vehicled looks after.",
    discussion: """
      REF names a property: PROPERTY, or DEVICE.PROPERTY where two devices have it.
      Exit status: 0 done, 1 failed, 2 wrong use, 3 daemon not running, 4 no such device, property or action,
      5 not connected, 6 timeout, 7 permission denied.
      """,
    version: version,
    subcommands: [
      StatusCommand.self, GetCommand.self, SetCommand.self, DoCommand.self, WatchCommand.self, DescribeCommand.self,
      ScanCommand.self, ConnectCommand.self, DisconnectCommand.self, DriveCommand.self, DtcCommand.self, MonitorsCommand.self,
      CarCommand.self, ToyCommand.self,
      OpenCommand.self,
      RecordCommand.self, ImportCommand.self, CallCommand.self, ReloadCommand.self, LogLevelCommand.self, MetricsCommand.self,
      DoctorCommand.self, BugreportCommand.self, VersionCommand.self,
      CompletionsCommand.self,
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
      Glibc.exit(2)  // whatever the parser refuses is wrong use
    }
  }

  /// The verb alone is parsed first, and the whole tree, which costs milliseconds, only for what it does not take:
  /// help, completion and mistakes.
  static func command(of given: [String]) throws -> any ParsableCommand {
    let verbs = configuration.subcommands
    let arguments = Arguments.verbFirst(given, verbs: verbs.compactMap { $0.configuration.commandName } + ["help"])
    if arguments.first == "help" { return try parseAsRoot(Arguments.withoutOptions(arguments)) }
    guard let verb = verbs.first(where: { $0.configuration.commandName == arguments.first }) else { return try parseAsRoot(arguments) }
    let inner = verb.configuration.subcommands
    let rest = Arguments.verbFirst(Array(arguments.dropFirst()), verbs: inner.compactMap { $0.configuration.commandName })
    if let command = try? (inner.first { $0.configuration.commandName == rest.first }?.parse(Array(rest.dropFirst()))) { return command }
    if let command = try? verb.parse(rest) { return command }
    return try parseAsRoot(arguments.prefix(1) + rest)
  }
}

/// A verb: its options, and what it does with them. Failures become one line and an exit code here and only here.
protocol Verb: ParsableCommand {
  var common: CommonOptions { get }
  mutating func perform(_ output: Output) throws
}

extension Verb {
  mutating func run() throws {
    let output = Output(common)
    do {
      try perform(output)
    } catch let failure as Failure {
      output.fail(failure)
      throw ExitCode(failure.exitCode)
    } catch let error as ContractError {
      output.fail(.refused(error))
      throw ExitCode(error.exitCode)
    }
  }
}
