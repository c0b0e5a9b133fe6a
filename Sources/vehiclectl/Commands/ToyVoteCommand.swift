// toy vote: votes on a fact, or withdraws the vote.

import ArgumentParser
import Protocols

struct ToyVoteCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "vote", abstract: "Vote on a fact, or withdraw the vote.",
    discussion: "With --json: {\"device\",\"text\",\"fact\",\"vote\",\"state\"}; \"state\" is \"counted\", \"unchanged\" or \"waiting\".")

  enum Vote: String, ExpressibleByArgument, CaseIterable {
    case up, down, none

    /// Also accepts `clear`, the old name of `none`.
    init?(argument: String) { self.init(rawValue: argument == "clear" ? "none" : argument) }
  }

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Argument(help: "The number of the fact, as in toy history.", transform: WatchCommand.positive)
  var id: Int
  @Argument(help: "The vote: up, down or none.")
  var vote: Vote

  func perform(_ output: Output) throws {
    let toy = try open(output)
    let result = try toy.run("vote", ["id": .int(id), "vote": .string(vote.rawValue)])
    guard output.json else { return report(toy, result, output) }
    let cells = result.rows?.first?.cells ?? []
    func cell(_ name: String) -> String? { result.columns?.firstIndex(of: name).flatMap { $0 < cells.count ? cells[$0] : nil } }
    output.json(
      .members([
        "device": .string(toy.device), "text": result.text.map(JSON.string), "fact": cell("fact").flatMap { Int($0) }.map(JSON.int),
        "vote": cell("vote").map(JSON.string), "state": cell("state").map(JSON.string),
      ]))
  }
}
