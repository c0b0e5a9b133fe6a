// reload: has the daemon reload its configuration; prints what was added, removed or changed.

import ArgumentParser
import Protocols
import Varlink

struct ReloadCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "reload", abstract: "Reload the daemon's configuration.",
    discussion: "Prints one line per change: +DEVICE (added), -DEVICE (removed) or ~NAME (changed).")

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    let result = try common.connect(output).call(Contract.Reload.self, .init())
    let (added, removed) = (result.added ?? [], result.removed ?? [])
    if output.json {
      let jsonArray = { (names: [String]) in JSON.array(names.map(JSON.string)) }
      return output.json(["changed": jsonArray(result.changed), "added": jsonArray(added), "removed": jsonArray(removed)])
    }
    if result.changed.isEmpty { output.note("nothing changed") }
    output.lines(
      result.changed.map { name in
        let (sign, style): (String, Style) = added.contains(name) ? ("+", .good) : removed.contains(name) ? ("-", .bad) : ("~", .warning)
        return output.paint(sign + Output.oneLine(name), style)
      })
  }
}
