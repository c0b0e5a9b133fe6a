// Summarises properties whose names differ only in a number as a range: `module-temperature-1–16  21–23 °C`. No I/O.

import Protocols
import Varlink

struct NumberedSeries {
  /// The name with the numbers of the members that have a value.
  let name: String
  /// The lowest and the highest value with the unit.
  let range: String
  let count: Int
  private static let minCount = 3

  /// The series among these rows, by the name of their first member; `members` are the names of all members.
  static func series(_ rows: [PropertyRow]) -> (byFirst: [String: NumberedSeries], members: Swift.Set<String>) {
    var groups: [String: [(row: PropertyRow, number: Int)]] = [:]
    for row in rows where row.value?.number != nil {
      guard let (pattern, number) = split(row.name) else { continue }
      groups["\(pattern.before)#\(pattern.after) \(row.unit ?? "")", default: []].append((row, number))
    }
    var byFirst: [String: NumberedSeries] = [:]
    var members: Swift.Set<String> = []
    for group in groups.values where group.count >= minCount {
      byFirst[group[0].row.name] = NumberedSeries(group)
      members.formUnion(group.map(\.row.name))
    }
    return (byFirst, members)
  }

  private init(_ members: [(row: PropertyRow, number: Int)]) {
    let pattern = Self.split(members[0].row.name)?.pattern ?? (before: "", after: "")
    let numbers = members.map(\.number)
    name = "\(pattern.before)\(numbers.min() ?? 0)–\(numbers.max() ?? 0)\(pattern.after)"
    count = members.count
    let sorted = members.sorted { ($0.row.value?.number ?? 0) < ($1.row.value?.number ?? 0) }
    let ends = [sorted[0].row.shortText, sorted[sorted.count - 1].row.shortText]
    let values = ends[0] == ends[1] ? ends[0] : ends.joined(separator: ends[0].hasPrefix("-") || ends[1].hasPrefix("-") ? " to " : "–")
    range = values + (members[0].row.unit.map { " \($0)" } ?? "")
  }

  /// The only number between the hyphens of the name, and the texts around it; nil if there is no number, or more than one.
  private static func split(_ name: String) -> (pattern: (before: String, after: String), number: Int)? {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    let positions = parts.indices.filter { Int(parts[$0]) != nil }
    guard positions.count == 1, let position = positions.first, let number = Int(parts[position]) else { return nil }
    let before = parts[..<position].map { "\($0)-" }.joined()
    return ((before, parts[(position + 1)...].map { "-\($0)" }.joined()), number)
  }
}
