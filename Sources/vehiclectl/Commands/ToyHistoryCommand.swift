// toy history: the facts that the toy has told, oldest first as they come.

import ArgumentParser
import Glibc
import Protocols

struct ToyHistoryCommand: ToyVerb {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "List the facts that were heard.",
    discussion: """
      With --json: {"facts":[{"id","text","up","down","vote","pending"}],"note"}; vote is "up", "down" or "none", pending is \
      true while the server has not got it, and note says where the list is old.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions

  func perform(_ output: Output) throws {
    let toy = try open(output)
    var facts: [Fact] = []
    var note: String?
    // Of very many facts the first come as steps.
    try toy.client.stream(Contract.Call.self, toy.parameters("history", [:]), first: common.replyTimeout, silence: common.replyTimeout) {
      result in
      if Interrupt.received { throw Failure.other("interrupted") }
      guard let result else { return true }
      // That the last report is not all of them is no news to who has the others.
      note = facts.isEmpty ? result.text : nil
      facts += Fact.all(result)
      return true
    }
    show(facts, note, output)
  }

  private func show(_ facts: [Fact], _ note: String?, _ output: Output) {
    if output.json {
      return output.json(.members(["facts": .array(facts.map { JSON($0) }), "note": note.map(JSON.string)]))
    }
    if let note { output.note(Output.oneLine(note)) }
    if facts.isEmpty { return output.note("no fact was heard yet; throw the toy") }
    output.lines(Fact.lines(facts, width: Self.width, paint: output.paint))
  }

  /// Where facts are folded; nil: nowhere, for whoever reads lines.
  static var width: Int? { Terminal.isTerminal(STDOUT_FILENO) ? Terminal.window.columns : nil }
}
