// The lines of a device in the view, before they are drawn: titles of groups, values, strips of cells. No I/O.

import Varlink

enum WatchLine {
  case title(String)
  case row(PropertyRow)
  case cells(CellStrip)
  /// A part of a strip's cells.
  case blocks([(scalar: Unicode.Scalar, role: StyleRole)])
  case blank
  case remark(String)
}

struct WatchLines {
  /// Headline numbers, which are drawn large.
  private(set) var headlines: [PropertyRow] = []
  private(set) var lines: [WatchLine] = []
  /// The number of rows that are shown only after the key `a`.
  private(set) var hidden = 0

  /// The lines of a device in columns of this width. `largest` is the number of headline numbers that can be drawn large; `isCompact`
  /// leaves out the blank lines between groups.
  init(_ device: WatchModel.Watched, _ view: WatchView, width: Int, largest: Int, isCompact: Bool, now: Double) {
    let relevant = device.rows.filter(view.isRelevant)
    hidden = device.rows.count - relevant.count
    let rows = relevant.filter(view.shows)
    if largest > 0, view.filter.isEmpty, view.order == .group {
      headlines = Array(rows.filter { $0.rank == 1 && Self.isNumber($0) }.prefix(largest))
      if headlines.allSatisfy({ $0.value == nil }) { headlines = [] }
    }
    let large = Swift.Set(headlines.map(\.name))
    let small = rows.filter { !large.contains($0.name) }
    switch view.order {
    case .group: addGroups(small, width, isCompact)
    case .name: lines = small.sorted { $0.name < $1.name }.map { .row($0) }
    case .age: lines = Self.sorted(small) { $0.age(at: now) ?? .infinity }.map { .row($0) }
    case .change: lines = Self.sorted(small) { -$0.changedAt }.map { .row($0) }
    }
    if lines.isEmpty, headlines.isEmpty { lines = [.remark(Self.reasonForNothing(device, view, hidden))] }
  }

  /// Whether the value is a number. A missing value counts as one if the property has a unit.
  private static func isNumber(_ row: PropertyRow) -> Bool { row.value?.number != nil || (row.value == nil && row.unit != nil) }

  private static func sorted(_ rows: [PropertyRow], by key: (PropertyRow) -> Double) -> [PropertyRow] {
    rows.map { (key($0), $0) }.enumerated().sorted { ($0.element.0, $0.offset) < ($1.element.0, $1.offset) }.map(\.element.1)
  }

  private static func reasonForNothing(_ device: WatchModel.Watched, _ view: WatchView, _ hidden: Int) -> String {
    if !view.filter.isEmpty { return "nothing matches \"\(view.filter)\"; Esc clears the filter" }
    if hidden > 0 { return "no values to show; a shows \(hidden) more" }
    return "no values"
  }

  private mutating func addGroups(_ rows: [PropertyRow], _ width: Int, _ isCompact: Bool) {
    var group: String?
    var start = 0
    while start < rows.count {
      let end = rows[start...].firstIndex { $0.group != rows[start].group } ?? rows.count
      if group != nil, !isCompact { lines.append(.blank) }
      group = rows[start].group
      lines.append(.title(rows[start].group))
      add(Array(rows[start..<end]), width)
      start = end
    }
  }

  /// Adds the rows of a group: strips of cells first, because they summarise it.
  private mutating func add(_ rows: [PropertyRow], _ width: Int) {
    for strip in CellStrip.strips(rows) {
      lines.append(.cells(strip))
      let blocks = strip.blocks
      let perLine = Self.cellsPerLine(width - 4)
      lines += stride(from: 0, to: blocks.count, by: perLine).map { .blocks(Array(blocks[$0..<min($0 + perLine, blocks.count)])) }
    }
    lines += rows.filter { !CellStrip.accepts($0) }.map { .row($0) }
  }

  /// A multiple of 16 if possible, so that modules of cells align.
  private static func cellsPerLine(_ width: Int) -> Int { [64, 48, 32, 16].first { $0 <= width } ?? max(1, width) }
}
