// history check: reads all recorded values, and lists damaged blocks.

import ArgumentParser
import Protocols
import Varlink

struct HistoryCheckCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Check all recorded values for damage.",
    discussion: "Exits with status 1 if a block is damaged. With --json: {\"blocks\":N,\"damage\":[…]}.")

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions

  func perform(_ output: Output) throws {
    let client = try history.connect(common, output)
    let result = try client.callShowingProgress(HistoryContract.CheckMethod.self, .init(), "checking", common, output, progress: \.progress)
    let damage = result.damage ?? []
    if output.json {
      output.json(["blocks": .int(result.blocks ?? 0), "damage": .array(damage.map(JSON.string))])
    } else {
      output.lines(damage.map { Output.oneLine($0) })
      output.line("\(result.blocks ?? 0) blocks checked, \(damage.isEmpty ? "none" : "\(damage.count)") damaged")
    }
    if !damage.isEmpty { throw ExitCode.failure }
  }
}
