// toy history: lists the facts that the toy has played, in the order of the daemon's report.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct ToyHistoryCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "List the facts that the toy has played.",
    discussion: """
      With --json: {"facts":[{"id","text","up","down","vote","pending"}],"note"}; "vote" is "up", "down" or "none", "pending" is \
      true until the server has received the vote, and "note" gives the reason if the list is outdated.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions

  func perform(_ output: Output) throws {
    let toy = try open(output)
    var facts: [Fact] = []
    var note: String?
    // A long history arrives in several replies.
    try toy.client.stream(
      Contract.Call.self, toy.parameters("history", [:]), firstReply: common.replyTimeout, laterReplies: common.replyTimeout
    ) {
      result in
      if Interrupt.received { throw Failure.other("interrupted") }
      guard let result else { return true }
      // If there are several replies, the text of the last one is for clients that read only that reply, so it is not shown.
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
    if facts.isEmpty { return output.note("no facts yet; throw the toy") }
    output.lines(Fact.lines(facts, width: Self.width, paint: output.paint))
  }

  /// The width at which facts wrap; nil if stdout is not a terminal.
  static var width: Int? { Terminal.isTerminal(STDOUT_FILENO) ? Terminal.window.columns : nil }
}
