// The entry point: options, the order of start-up and shutdown, and signals. Everything else runs on the loop.

import ArgumentParser
import CLinux
import Glibc
import Logging
import Protocols
import ServiceRuntime

@main struct VehicledCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicled", abstract: "Connect to vehicles and other devices, and serve their values on a control socket.",
    usage: "vehicled [<options>]",
    discussion: "vehicled.toml(5) describes the configuration, and vehiclectl(1) the command line client.", version: Protocols.version)

  @ArgumentParser.Option(
    help: ArgumentHelp("Read this configuration file, then FILE.d/*.toml, and signals.d/*.toml in its directory.", valueName: "file"))
  var config = Configuration.defaultPath

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Listen on this socket (default: $VEHICLED_SOCKET, socket in [control], or /run/vehicled/io.vehicled).", valueName: "path"))
  var socket: String?

  @ArgumentParser.Option(
    help: ArgumentHelp(
      "Store state in this directory (default: $STATE_DIRECTORY, $XDG_STATE_HOME/vehicled, or ~/.local/state/vehicled).",
      valueName: "directory"))
  var state: String?

  @Flag(help: "Check the configuration, print its errors, and exit.")
  var checkConfig = false

  @ArgumentParser.Option(
    help: ArgumentHelp("Log messages of this level and above (default: log-level in the configuration, or info).", valueName: "level"))
  var logLevel: Logger.Level?

  static func main() {
    switch CommandLine.arguments.dropFirst() {
    case [GuardianProcess.argument]: GuardianProcess.main()
    case [CANSocketService.argument]: CANSocketService.main()
    default: break
    }
    refuseWaitingClientsAtExit()
    main(nil)
  }

  func validate() throws {
    // The kernel would bind an empty path to an abstract socket, which has no file permissions.
    if socket == "" { throw ValidationError("--socket is empty: give a path, or omit the option") }
  }

  func run() throws {
    _ = Accounts.ownName
    let configuration: Configuration
    do { configuration = try Configuration.load(config, kinds: registry) } catch {
      printError(error.description)
      throw ExitCode(2)
    }
    if checkConfig { return reportValid(configuration) }
    clinux_return_blocks()
    // If SIGXFSZ is ignored, a write beyond the file size limit fails with EFBIG, like a write to a full disk.
    for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
    // The signals are blocked before other threads start, so that all threads inherit the mask and sigwait gets the signals.
    var awaited = sigset_t()
    sigemptyset(&awaited)
    for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&awaited, number) }
    pthread_sigmask(SIG_BLOCK, &awaited, nil)
    Journal.bootstrap(identifier: "vehicled", level: logLevel ?? configuration.logLevel ?? .info) { LogRing.shared.append($0) }
    let (signals, arrivals) = AsyncStream.makeStream(of: CInt.self)
    // Tasks run on the loop as well: Dispatch's thread pool, once used, would wake the process every second and log that it cannot set the
    // priority of its threads.
    Task(executorPreference: LoopTasks.executor) { endProcess(await serve(configuration, signals)) }
    while true {
      var number: CInt = 0
      if sigwait(&awaited, &number) == 0 { arrivals.yield(number) }
    }
  }

  /// Prints the number of devices, and warnings about groups and users that do not exist.
  private func reportValid(_ configuration: Configuration) {
    let access = Access(configuration.control)
    let answers = Dictionary(uniqueKeysWithValues: access.queries.map { ($0, Accounts.resolve($0)) })
    for warning in access.problems(answers) { printError("warning: \(warning)") }
    print("ok: \(configuration.devices.count) \(configuration.devices.count == 1 ? "device" : "devices")")
  }

  /// Runs the daemon until a signal ends it, reloads the configuration at every SIGHUP, and returns the exit status.
  private func serve(_ configuration: Configuration, _ signals: AsyncStream<CInt>) async -> CInt {
    let daemon = await Daemon(configuration, path: config, socket: socketPath(configuration), state: statePath())
    do { try await daemon.start() } catch {
      printError(error.description)
      return 1
    }
    for await signal in signals {
      guard signal == SIGHUP else { break }
      _ = await daemon.reload()
    }
    await daemon.stop()
    return 0
  }

  private func socketPath(_ configuration: Configuration) -> String {
    socket ?? environment("VEHICLED_SOCKET") ?? configuration.control.socket ?? "/run/vehicled/io.vehicled"
  }

  private func statePath() -> String {
    if let path = state ?? environment("STATE_DIRECTORY") { return path }
    if let path = environment("XDG_STATE_HOME") { return "\(path)/vehicled" }
    return "\(environment("HOME") ?? "")/.local/state/vehicled"
  }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}

private func printError(_ text: String) { ServiceRuntime.printError(text, of: "vehicled") }
