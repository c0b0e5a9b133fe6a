// The program: options, the order of start and stop, and signals. Everything else is on the loop.

import ArgumentParser
import Glibc
import Logging
import Protocols

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
    _ = Accounts.ownName
    let configuration: Configuration
    do { configuration = try Configuration.load(config, kinds: registry) } catch {
      complain(error.description)
      throw ExitCode(2)
    }
    if checkConfig { return }
    // A write that a limit forbids fails (EFBIG), as one to a full disk does.
    for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
    // Blocked before there is another thread: all of them leave these to this one.
    var awaited = sigset_t()
    sigemptyset(&awaited)
    for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&awaited, number) }
    pthread_sigmask(SIG_BLOCK, &awaited, nil)
    Journal.bootstrap(level: logLevel ?? configuration.logLevel ?? .info)
    let (signals, arrivals) = AsyncStream.makeStream(of: CInt.self)
    // Everything asynchronous runs on the loop, too: Dispatch's pool, once used, wakes the process every second, and complains in the
    // journal that it cannot set the priority of its threads.
    Task(executorPreference: LoopTasks.executor) { Glibc.exit(await serve(configuration, signals)) }
    while true {
      var number: CInt = 0
      if sigwait(&awaited, &number) == 0 { arrivals.yield(number) }
    }
  }

  /// Runs the daemon until a signal ends it, reads the configuration again at every SIGHUP, and gives the exit status.
  private func serve(_ configuration: Configuration, _ signals: AsyncStream<CInt>) async -> CInt {
    let daemon = await Daemon(configuration, path: config, socket: socketPath(configuration), state: statePath())
    do { try await daemon.start() } catch {
      complain(error.description)
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

private func environment(_ name: String) -> String? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return String(cString: value)
}

/// One line on standard error.
private func complain(_ text: String) {
  let line = Array("vehicled: \(text)\n".utf8)
  _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
}
