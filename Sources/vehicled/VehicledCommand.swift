// The program: options, the order of start and stop, and signals. Everything else is on the loop.

import ArgumentParser
import Glibc
import Logging
import Protocols
import ServiceLifecycle
import UnixSignals

@main struct VehicledCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicled", abstract: "Keeps links to vehicles and serves their state on a control socket.",
    discussion: "Configuration: vehicled.toml(5). Client: vehiclectl(1).", version: Protocols.version)

  @ArgumentParser.Option(help: "The configuration; FILE.d/*.toml are read after it, and signals.d/*.toml beside it.")
  var config = Configuration.defaultPath

  @ArgumentParser.Option(help: "The control socket (default: $VEHICLED_SOCKET, the configuration's, /run/vehicled/io.vehicled).")
  var socket: String?

  @ArgumentParser.Option(help: "The state directory (default: $STATE_DIRECTORY, $XDG_STATE_HOME/vehicled, ~/.local/state/vehicled).")
  var state: String?

  @Flag(help: "Check the configuration, say what is wrong with it, and exit.")
  var checkConfig = false

  @ArgumentParser.Option(help: "trace, debug, info, notice, warning, error or critical.")
  var logLevel: Logger.Level?

  static func main() {
    if CommandLine.arguments.dropFirst() == [GuardianProcess.argument] { GuardianProcess.main() }
    main(nil)
  }

  func validate() throws {
    // The kernel would take it for a socket without a file, which nobody guards.
    if socket == "" { throw ValidationError("--socket \"\" is no path: give one, or leave it out") }
  }

  func run() throws {
    let configuration: Configuration
    do { configuration = try Configuration.load(config, kinds: registry) } catch {
      complain(error.description)
      throw ExitCode(2)
    }
    if checkConfig { return }
    signal(SIGPIPE, SIG_IGN)
    Journal.bootstrap(level: logLevel ?? configuration.logLevel ?? .info)
    // Everything asynchronous runs on the loop, too: Dispatch's pool, once used, wakes the process every second.
    Task(executorPreference: LoopTasks.executor) { Glibc.exit(await serve(configuration)) }
    while true { pause() }
  }

  /// Runs the daemon until it is told to stop, and gives the exit status.
  private func serve(_ configuration: Configuration) async -> CInt {
    let daemon = await Daemon(configuration, path: config, socket: socketPath(configuration), state: statePath())
    let reloads = await UnixSignalsSequence(trapping: .sighup)
    do { try await daemon.start() } catch {
      complain(error.description)
      return 1
    }
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [DaemonService(daemon: daemon, reloads: reloads)], gracefulShutdownSignals: [.sigterm, .sigint],
        // What the group would say, the daemon says itself.
        logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() }))
    do { try await group.run() } catch {
      complain("stopped by an error: \(error)")
      return 1
    }
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

/// Runs until it is told to stop, and reads the configuration again at every SIGHUP.
private struct DaemonService: Service {
  let daemon: Daemon
  let reloads: UnixSignalsSequence

  func run() async throws {
    let reloading = Task(executorPreference: LoopTasks.executor) {
      for await _ in reloads { _ = await daemon.reload() }
    }
    try? await gracefulShutdown()
    reloading.cancel()
    await daemon.stop()
  }
}

extension Logger.Level: @retroactive ExpressibleByArgument {}

private func environment(_ name: String) -> String? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return String(cString: value)
}

/// One line on standard error.
private func complain(_ text: String) {
  let line = Array("vehicled: \(text)\n".utf8)
  _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
}
