// The model years of a command, from OBDb's `filter`: `from` and `to`, both inclusive, and single `years`. If `from` is after `to`, the
// years between them are excluded.

import Protocols

struct ModelYears: Equatable, Sendable {
  private let from: Int?
  private let to: Int?
  private let years: [Int]

  /// Parses a filter; nil if it has no year.
  init?(_ filter: JSONNode?) {
    guard let filter, filter.kind == .object else { return nil }
    (from, to) = (filter["from"]?.int, filter["to"]?.int)
    years = filter["years"]?.elements.prefix(100).compactMap(\.int) ?? []
    if from == nil, to == nil, years.isEmpty { return nil }
  }

  func contains(_ year: Int) -> Bool {
    let isInRange =
      switch (from, to) {
      case (let from?, let to?) where from <= to: (from...to).contains(year)
      case (nil, nil): false
      case (let from, let to): from.map { year >= $0 } ?? false || to.map { year <= $0 } ?? false
      }
    return isInRange || years.contains(year)
  }

  /// `2019 to 2021, 2024`
  var text: String {
    var words: [String] = []
    switch (from, to) {
    case (let from?, let to?) where from <= to: words.append("\(from) to \(to)")
    case (let from, let to):
      if let to { words.append("until \(to)") }
      if let from { words.append("from \(from) on") }
    }
    return (words + years.prefix(30).map(String.init)).joined(separator: ", ")
  }
}
