// vehiclectl: the command line client of vehicled's control socket. Values and actions come from the schemas that the daemon sends; only
// Setup/, Codes/, Toy/, Network/, BugReport and MetricsCommand contain code for specific kinds. Commands/ has one file per command;
// Failure.swift has the exit codes.

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
        name: "Values",
        subcommands: [
          StatusCommand.self, GetCommand.self, SetCommand.self, WatchCommand.self, DescribeCommand.self, MetricsCommand.self,
        ]),
      CommandGroup(
        name: "Devices",
        subcommands: [
          SetupCommand.self, ScanCommand.self, ConnectCommand.self, DisconnectCommand.self, DoCommand.self, WebPageCommand.self,
          RecordCommand.self,
        ]),
      CommandGroup(
        name: "History",
        subcommands: [
          TripsCommand.self, TripCommand.self, ChargesCommand.self, ChargeCommand.self, ParkedCommand.self, PlotCommand.self,
          HistoryCommand.self,
        ]),
      CommandGroup(name: "Driving and RC cars", subcommands: [DriveCommand.self, CameraCommand.self]),
      CommandGroup(name: "Vehicle diagnostics", subcommands: [DtcCommand.self, MonitorsCommand.self]),
      CommandGroup(name: "Toys", subcommands: [ToyCommand.self]),
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
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == Completion.request { return Output(json: false).lines(Completion.lines(Array(arguments.dropFirst()))) }
    do {
      var command = try command(of: arguments)
      try command.run()
    } catch let code as ExitCode {
      Glibc.exit(code.rawValue)
    } catch {
      guard !exitCode(for: error).isSuccess else {
        Output.write(Help.arranged(fullMessage(for: error), width: Help.width) + "\n", to: STDOUT_FILENO)
        Glibc.exit(0)
      }
      let failure = error as? Failure ?? CommandNames.failure(words) ?? usageFailure(message(for: error))
      Output(json: CommandLine.arguments.contains("--json")).fail(failure)
      Glibc.exit(2)
    }
  }

  /// The failure for an ArgumentParser message, which consists of sentences.
  static func usageFailure(_ message: String) -> Failure {
    var text = message.prefix(1).lowercased() + message.dropFirst()
    if text.hasSuffix(".") { text.removeLast() }
    for (sentence, clause) in [(". Did you mean ", "; did you mean "), (". Please provide one of ", "; use one of ")] {
      text = text.replacing(sentence, with: clause)
    }
    let command = ["vehiclectl"] + CommandNames.existing(words) + ["--help"]
    return .usage(text.hasSuffix("?") ? text : "\(text); see \"\(command.joined(separator: " "))\"")
  }

  /// For the help and for completion; every command parses its own.
  @OptionGroup var common: CommonOptions

  /// The command line without its options.
  static var words: [String] { Arguments.withoutOptions(Array(CommandLine.arguments.dropFirst())) }

  /// Returns the command for these arguments. Parses the one subcommand first; the whole tree, which costs milliseconds, is parsed only
  /// for help, completion and errors.
  static func command(of given: [String]) throws -> any ParsableCommand {
    let commands = configuration.subcommands
    let names = commands.flatMap { $0.configuration.names } + ["help"]
    let arguments = Arguments.commandFirst(Arguments.joiningNegativeValues(given), commands: names)
    if arguments.first == "help" {
      let words = Arguments.withoutOptions(arguments)
      if let failure = CommandNames.failure(Array(words.dropFirst()), isHelp: true) { throw failure }
      return try parseAsRoot(words)
    }
    guard let name = arguments.first, let subcommand = commands.first(where: { $0.configuration.names.contains(name) }) else {
      if let command = try? StatusCommand.parse(arguments) { return command }
      return try parseAsRoot(arguments)
    }
    let inner = subcommand.configuration.subcommands
    let rest = Arguments.commandFirst(Array(arguments.dropFirst()), commands: inner.flatMap { $0.configuration.names })
    if let name = rest.first, let command = inner.first(where: { $0.configuration.names.contains(name) }) {
      if let command = try? command.parse(Array(rest.dropFirst())) { return command }
      // With an argument of the outer command, ArgumentParser would print the outer command's help.
      if rest.contains("--help") || rest.contains("-h") { return try parseAsRoot(["help", arguments[0], name]) }
    }
    if let command = try? subcommand.parse(rest) { return command }
    return try parseAsRoot(arguments.prefix(1) + rest)
  }
}

extension CommandConfiguration {
  /// The name of the command and its aliases.
  var names: [String] { [commandName].compactMap(\.self) + aliases }
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
      try fail(failure, output)
    } catch let error as ContractError {
      try fail(.rejected(error), output)
    }
  }

  private func fail(_ failure: Failure, _ output: Output) throws {
    var failure = failure
    if case .notRunning = failure {
      failure = CommandNames.misspelt(VehicleCtl.words) ?? failure
    } else if failure.isUnknownName, let client = try? Client(path: common.socketPath, timeout: 1),
      let schemas = try? client.call(Contract.Describe.self, .init(device: nil)).schemas
    {
      failure = failure.suggesting(from: schemas, words: VehicleCtl.words)
    }
    output.fail(failure)
    throw ExitCode(failure.exitCode)
  }
}
