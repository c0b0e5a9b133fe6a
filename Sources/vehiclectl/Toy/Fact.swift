// The toy's trivia facts as a table and as JSON. No I/O. Columns are found by name, so that a newer daemon can add columns.

import Protocols
import Varlink

struct Fact: Equatable {
  /// The number of the fact; nil if the cell is not a number.
  var id: Int?
  var text: String
  var up: Int?
  var down: Int?
  /// `up`, `down` or `none`.
  var vote: String
  /// Whether the server has not received the vote yet.
  var isPending = false

  /// The facts of a report.
  static func all(_ result: Contract.Call.Result) -> [Fact] {
    let columns = result.columns ?? []
    return (result.rows ?? []).map { row in
      func cell(_ name: String) -> String {
        columns.firstIndex(of: name).flatMap { $0 < row.cells.count ? row.cells[$0] : nil } ?? ""
      }
      return Fact(
        id: Int(cell("id")), text: cell("fact"), up: Int(cell("up")), down: Int(cell("down")),
        vote: cell("vote").isEmpty ? none : cell("vote"), isPending: cell("pending") == "yes")
    }
  }

  private static let none = "none"
  private var voteText: String { vote == Self.none && !isPending ? "" : isPending ? "\(vote) (pending)" : vote }

  /// The lines of a table. If `width` is given, long facts are wrapped.
  static func lines(_ facts: [Fact], width: Int?, paint: (String, Style) -> String) -> [String] {
    var table = Table(">id", "fact", ">up", ">down", "vote")
    let others = [
      ("id", facts.map(\.idText)), ("up", facts.map { $0.up.text }), ("down", facts.map { $0.down.text }), ("vote", facts.map(\.voteText)),
    ]
    let otherWidth = others.reduce(0) { sum, column in
      let widest = column.1.map { Output.oneLine($0).displayWidth }.max() ?? 0
      return sum + (widest == 0 ? 0 : max(widest, column.0.displayWidth) + 2)
    }
    for fact in facts {
      let text = Output.oneLine(fact.text)
      let wrapped = width.map { text.wrapped(to: max(minWidth, $0 - otherWidth)) } ?? [text]
      for (position, line) in wrapped.enumerated() {
        table.rows.append(
          position == 0
            ? [Cell(fact.idText), Cell(line), Cell(fact.up.text), Cell(fact.down.text), Cell(fact.voteText)] : [Cell(""), Cell(line)])
      }
    }
    return table.lines(paint: paint)
  }

  /// The minimum width of the column `fact` in cells.
  private static let minWidth = 16

  private var idText: String { id.text }
}

extension Int? {
  fileprivate var text: String { map(String.init) ?? "" }
}

extension JSON {
  /// A fact; unknown members are null.
  init(_ fact: Fact) { self = .members(JSON.members(of: fact)) }

  /// The members of a fact.
  static func members(of fact: Fact, note: String? = nil) -> KeyValuePairs<String, JSON?> {
    [
      "id": fact.id.map(JSON.int) ?? .null, "text": .string(fact.text), "up": fact.up.map(JSON.int) ?? .null,
      "down": fact.down.map(JSON.int) ?? .null, "vote": .string(fact.vote), "pending": .bool(fact.isPending),
      "note": note.map(JSON.string),
    ]
  }
}
