// history compact: merges recent blocks into larger ones, and returns unused space to the file system.

import ArgumentParser
import Protocols
import Varlink

struct HistoryCompactCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "compact", abstract: "Merge recent blocks and free unused space.",
    discussion: """
      The service merges blocks automatically; this command is useful after "history delete". With --json: {"size":BYTES,"damage":[…]}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions

  func perform(_ output: Output) throws {
    let result = try history.connectForLongCalls(common, output).call(HistoryContract.CompactMethod.self, .init())
    output.noteDamage(result.damage)
    if output.json {
      output.json(["size": .int(result.size), "damage": .array(result.damage.map(JSON.string))])
    } else {
      output.line("size \(Format.size(result.size))")
    }
  }
}
