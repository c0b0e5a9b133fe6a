// toy history: the facts that the toy has told, oldest first as they come.

import ArgumentParser
import Glibc
import Protocols

struct ToyHistoryCommand: ToyVerb {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "List the facts that were heard.",
    discussion: """
      With --json: {"facts":[{"id","text","up","down","vote"}],"note"}; vote is "up", "down" or null, note says where the list is old.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions

  func perform(_ output: Output) throws { Self.show(try open(output).run("history"), output) }

  private static func show(_ result: Contract.Call.Result, _ output: Output) {
    let facts = Fact.all(result)
    if output.json {
      return output.json(.members(["facts": .array(facts.map { JSON($0) }), "note": result.text.map(JSON.string)]))
    }
    if let text = result.text { output.note(Output.oneLine(text)) }
    if facts.isEmpty { return output.note("no fact was heard yet; throw the toy") }
    output.lines(Fact.lines(facts, width: width, paint: output.paint))
  }

  /// Where facts are folded; nil: nowhere, for whoever reads lines.
  static var width: Int? { Terminal.isTerminal(STDOUT_FILENO) ? Terminal.window.columns : nil }
}
