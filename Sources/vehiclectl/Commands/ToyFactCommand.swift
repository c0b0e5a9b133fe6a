// toy fact: shows one fact with its votes.

import ArgumentParser
import Protocols

struct ToyFactCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "fact", abstract: "Show one fact with its votes.",
    discussion: "With --json: {\"id\",\"text\",\"up\",\"down\",\"vote\",\"pending\",\"note\"}, as in toy history.")

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Argument(help: "The number of the fact, as in toy history.", transform: WatchCommand.positive)
  var id: Int

  func perform(_ output: Output) throws {
    let result = try open(output).run("fact", ["id": .int(id)])
    let facts = Fact.all(result)
    if output.json, let fact = facts.first { return output.json(.members(JSON.members(of: fact, note: result.text))) }
    if let text = result.text { output.note(Output.oneLine(text)) }
    output.lines(Fact.lines(facts, width: ToyHistoryCommand.width, paint: output.paint))
  }
}
