// The options of the commands that use the history service: its socket, and a range of time.

import ArgumentParser
import Protocols
import Varlink

struct HistoryOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Connect to the history service at this socket (default: $\(Service.history.socketVariable), or \(Service.history.defaultSocket)).",
      valueName: "path"), completion: .file())
  var historySocket: String?

  var socketPath: String { historySocket ?? Self.defaultSocketPath }

  /// The path if --history-socket is not given.
  static var defaultSocketPath: String { Environment[Service.history.socketVariable] ?? Service.history.defaultSocket }

  /// Opens the socket.
  func connect(_ common: CommonOptions, _ output: Output) throws(Failure) -> Client {
    try Client(
      path: socketPath, timeout: common.replyTimeout, service: .history, trace: common.verbose ? { output.trace($0, $1) } : nil)
  }
}

/// The options that select a range of time.
struct RangeOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Start at this time: \(TimeArgument.grammar).", valueName: "time"), transform: TimeArgument.option)
  var since: Int?
  @Option(help: ArgumentHelp("End at this time.", valueName: "time"), transform: TimeArgument.option)
  var until: Int?

  /// Throws unless the range ends after it starts.
  func check() throws(Failure) {
    if let since, let until, until <= since {
      throw .usage("invalid range: --since is not before --until; use an earlier --since or a later --until")
    }
  }
}
