// reload: has the daemon read its configuration again.

import ArgumentParser
import Protocols

struct ReloadCommand: Verb {
  static let configuration = CommandConfiguration(commandName: "reload", abstract: "Have the daemon read its configuration again.")

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    let changed = try common.connect(output).call(Contract.Reload.self, .init()).changed
    if output.json { return output.json(["changed": .array(changed.map(JSON.string))]) }
    if changed.isEmpty { output.note("nothing changed") }
    output.lines(changed.map(Output.oneLine))
  }
}
