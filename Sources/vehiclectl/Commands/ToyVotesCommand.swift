// toy votes: lists or deletes votes that the server has not received yet.

import ArgumentParser
import Protocols

struct ToyVotesCommand: ToySubcommand {
  static let configuration = CommandConfiguration(
    commandName: "votes", abstract: "List or delete pending votes.",
    discussion: """
      The daemon sends pending votes when the server responds. Votes of a different user or for a different server remain pending until \
      that user logs in to that server.
      With --json: {"votes":[{"fact","vote","user","server","state"}],"note"}.
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var toy: ToyOptions
  @Option(
    help: ArgumentHelp(
      "Delete the pending votes on the fact with this ID, the votes of other users or servers (held), or all.", valueName: "id|held|all")
  )
  var delete: String?
  /// The old name of --delete.
  @Option(help: .hidden)
  var forget: String?

  func validate() throws {
    if forget != nil { throw ValidationError("--forget was renamed; use --delete") }
  }

  func perform(_ output: Output) throws {
    let toy = try open(output)
    let result = try toy.run("votes", delete.map { ["delete": .string($0)] } ?? [:])
    if delete != nil { return report(toy, result, output) }
    let columns = result.columns ?? []
    let rows = result.rows?.map(\.cells) ?? []
    if output.json {
      let votes = rows.filter { $0.count == 5 }.map { cells in
        JSON.members([
          "fact": Self.number(cells[0]), "vote": .string(cells[1]), "user": Self.number(cells[2]), "server": .string(cells[3]),
          "state": .string(cells[4]),
        ])
      }
      return output.json(.members(["votes": .array(votes), "note": result.text.map(JSON.string)]))
    }
    if let text = result.text { output.note(Output.oneLine(text)) }
    if !rows.isEmpty {
      output.lines(Table(titles: columns, rows: rows.map { $0.map { Cell($0) } }).lines(width: Output.width, paint: output.paint))
    }
  }

  private static func number(_ text: String) -> JSON { Int(text).map(JSON.int) ?? .null }
}
