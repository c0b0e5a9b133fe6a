// toy vote: a vote for or against a fact that was heard, or none any more.

import ArgumentParser
import Protocols

struct ToyVoteCommand: ToyVerb {
  static let configuration = CommandConfiguration(commandName: "vote", abstract: "Vote on a fact, or take the vote back.")

  enum Vote: String, ExpressibleByArgument, CaseIterable {
    case up, down, clear
  }

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Argument(help: "The fact's number in the history.", transform: WatchCommand.positive)
  var id: Int
  @Argument(help: "up, down or clear.")
  var vote: Vote

  func perform(_ output: Output) throws {
    let toy = try open(output)
    tell(toy, try toy.run("vote", ["id": .int(id), "vote": .string(vote.rawValue)]), output)
  }
}
