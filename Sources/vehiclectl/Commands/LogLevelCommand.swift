// log-level: how much the daemon tells its journal, changed while it runs.

import ArgumentParser
import Protocols

struct LogLevelCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "log-level", abstract: "Show or set how much the daemon writes to its journal.",
    discussion:
      "Holds until the daemon ends, or reads a configuration with another log-level. With debug it tells why links wait and devices back off."
  )

  @OptionGroup var common: CommonOptions

  private static let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]

  @Argument(
    help: ArgumentHelp("trace, debug, info, notice, warning, error or critical; without one it is shown.", valueName: "level"),
    completion: .list(levels), transform: level)
  var level: String?

  private static func level(_ text: String) throws -> String {
    guard levels.contains(text) else { throw ValidationError("\"\(text)\" is none of \(levels.joined(separator: ", "))") }
    return text
  }

  func perform(_ output: Output) throws {
    let level = try common.connect(output).call(Contract.LogLevel.self, .init(level: level)).level
    if output.json { output.json(["level": .string(level)]) } else { output.line(Output.oneLine(level)) }
  }
}
