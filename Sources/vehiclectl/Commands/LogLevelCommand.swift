// log-level: shows or sets the log level of the running daemon.

import ArgumentParser
import Protocols
import Varlink

struct LogLevelCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "log-level", abstract: "Show or set the daemon's log level.",
    discussion: """
      The level is reset when the daemon restarts or loads a configuration with a different log-level. At level debug, the log also shows \
      why links and devices wait before they retry.
      """)

  @OptionGroup var common: CommonOptions

  @Argument(
    help: ArgumentHelp("trace, debug, info, notice, warning, error or critical (default: show the level).", valueName: "level"),
    completion: .list(LogFormat.levels), transform: level)
  var level: String?

  /// The level with this name. The names of syslog are accepted as well.
  static func level(_ text: String) throws -> String {
    let text = ["warn": "warning", "err": "error", "crit": "critical"][text] ?? text
    guard LogFormat.levels.contains(text) else {
      throw ValidationError("\"\(text)\" is not a log level; use one of \(LogFormat.levels.joined(separator: ", "))")
    }
    return text
  }

  func perform(_ output: Output) throws {
    let level = try common.connect(output).call(Contract.LogLevel.self, .init(level: level)).level
    if output.json { output.json(["level": .string(level)]) } else { output.line(Output.oneLine(level)) }
  }
}
