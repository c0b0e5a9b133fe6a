// reload: has the daemon reload its configuration; prints what changed.

import ArgumentParser
import Protocols
import Varlink

struct ReloadCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "reload", abstract: "Reload the daemon's configuration.")

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    let changed = try common.connect(output).call(Contract.Reload.self, .init()).changed
    if output.json { return output.json(["changed": .array(changed.map(JSON.string))]) }
    if changed.isEmpty { output.note("nothing changed") }
    output.lines(changed.map(Output.oneLine))
  }
}
