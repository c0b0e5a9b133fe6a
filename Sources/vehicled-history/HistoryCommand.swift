// The program: its options, and errors at startup.

import ArgumentParser
import CLinux
import ConfigurationFiles
import Glibc
import HistoryStore
import Protocols
import SQLite
import ServiceRuntime
import Varlink

@main struct HistoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicled-history", abstract: "Record the values of vehicled, and compute trips, charges and parked periods from them.",
    usage: "vehicled-history [<options>]",
    discussion: "vehicled-history(8) describes the configuration. vehiclectl(1) shows the recorded values.", version: Protocols.version)

  @ArgumentParser.Option(help: ArgumentHelp("Read this configuration file, then FILE.d/*.toml.", valueName: "file"))
  var config: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Listen on this socket (default: socket in [history], or \(HistoryContract.defaultSocket)).", valueName: "path"))
  var socket: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Record from the daemon on this socket (default: $VEHICLED_SOCKET, daemon in [history], or /run/vehicled/io.vehicled).",
      valueName: "path"))
  var daemon: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Store values in this directory (default: $STATE_DIRECTORY, directory in [history], or /var/lib/vehicled-history).",
      valueName: "directory"))
  var state: String?

  @Flag(help: "Check the configuration, print its errors, and exit.")
  var checkConfig = false

  static func main() {
    refuseWaitingClientsAtExit()
    main(nil)
  }

  func validate() throws {
    if socket == "" { throw ValidationError("--socket is empty; specify a path, or omit the option") }
    if daemon == "" { throw ValidationError("--daemon is empty; specify a path, or omit the option") }
  }

  func run() throws {
    _ = Accounts.ownName
    let configuration: HistoryConfiguration
    do {
      configuration = try HistoryConfiguration.load(config ?? HistoryConfiguration.defaultPath, isRequired: config != nil)
    } catch {
      printError(error.description)
      throw ExitCode(2)
    }
    if checkConfig { return reportValid(configuration) }
    // Ignore SIGXFSZ, so that a write beyond the file size limit fails like a write to a full disk.
    signal(SIGXFSZ, SIG_IGN)
    clinux_keep_memory()
    Journal.bootstrap(identifier: "vehicled-history", level: configuration.logLevel)
    let paths = HistoryService.Paths(
      socket: socket ?? configuration.socket, daemon: daemon ?? environment("VEHICLED_SOCKET") ?? configuration.daemon,
      directory: state ?? environment("STATE_DIRECTORY") ?? configuration.directory ?? "/var/lib/vehicled-history",
      alerts: environment("RUNTIME_DIRECTORY") ?? "/run/vehicled-alerts")
    do {
      try HistoryService(configuration, paths, loop: EventLoop()).run()
    } catch {
      printError("\(error)")
      guard let error = error as? StoreError, error.isPermanent else { endProcess(1) }
      throw ExitCode(2)
    }
    endProcess()
  }

  /// Prints a summary, and warnings about groups and users that do not exist.
  private func reportValid(_ configuration: HistoryConfiguration) {
    for query in configuration.observe.queries + configuration.control.queries where Accounts.resolve(query) == .absent {
      printError("warning: \(query.label) does not exist: its entry in [history] has no effect")
    }
    print("ok: \(configuration.alerts.count) \(configuration.alerts.count == 1 ? "alert" : "alerts")")
  }
}

private func printError(_ text: String) { ServiceRuntime.printError(text, of: "vehicled-history") }
