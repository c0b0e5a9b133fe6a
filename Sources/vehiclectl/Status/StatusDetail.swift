// Formats `status` of one device for a terminal: the links, then one block per group, with the name of the group on the left and its values
// in columns. Shows as many values as fit, the most important of each group first. If there are fewer lines than groups, shows the most
// important values of all groups. Details and statistics are left out; cell voltages, and series of numbered properties
// (module-temperature-1 to -16), are summarised as ranges. No I/O.

import Varlink

struct StatusDetail {
  private let status: DeviceStatus
  private let width: Int?
  private let paint: (String, Style) -> String
  /// The width of the names of groups, and of a column of values; the number of columns.
  private var (labelWidth, columnWidth, columnCount) = (0, 0, 1)

  /// A value, or a summary of several.
  private struct Item {
    let name: String
    let value: String
    var style = Style.plain
    /// 1 headline, 2 main.
    var rank = 2
    /// The number of properties that it stands for.
    var properties = 1
    /// Whether it has a line of its own.
    var isWide = false

    var displayWidth: Int { name.displayWidth + 1 + value.displayWidth }
  }

  /// The minimum width of a column of values, and of a window that has room for the names of groups.
  private static let (minColumn, minLabelledWidth) = (30, 60)
  private static let gap = 2

  init(_ status: DeviceStatus, width: Int?, paint: @escaping (String, Style) -> String) {
    (self.status, self.width, self.paint) = (status, width, paint)
  }

  /// The lines, at most `rows` if it is not nil. The log is the last part.
  mutating func lines(rows: Int?, log: [String]) -> [String] {
    let header = status.header(detailed: false, width: width, paint: paint)
    var groups = groups()
    // Reserve a line for each group and the blank lines around the values; the rest is for the log. A terminal with very few lines shows
    // only the header and the values.
    let missing = reasons()
    let blankLines = rows.map { $0 < header.count + 3 ? 0 : 2 } ?? 2
    let room = rows.map { max(1, $0 - header.count - blankLines) }
    let minLines = groups.count + missing.count
    let log = room.map { log.suffix(max(0, $0 - minLines - 1)) } ?? log[...]
    let end = log.isEmpty ? [] : [""] + log.map { $0.truncated(to: width) }
    if let room, room < groups.count {
      let items = groups.flatMap(\.items)
      groups = [("", items.filter { $0.rank == 1 } + items.filter { $0.rank != 1 })]
    }
    layOut(groups)
    let parts = groups.map { self.lines($0.name, $0.items) } + [missing.map { ($0, 0) }]
    let body = Self.fit(parts, into: room.map { $0 - end.count })
    let hidden = status.rows.count - body.reduce(0) { $0 + $1.properties }
    var lines = header + (body.isEmpty || blankLines == 0 ? [] : [""]) + body.map { $0.line.truncated(to: width) }
    if hidden > 0, blankLines > 0 {
      // A truncated command would be of no use.
      let hints = ["  \(hidden) more; see: vehiclectl status \(status.device.name) --all", "  \(hidden) more; see option --all"]
      lines.append(paint(Output.oneLine(hints.first { $0.displayWidth <= width ?? .max } ?? hints[1]).truncated(to: width), .dim))
    }
    return lines + end
  }

  /// The lines of the parts. If not all lines fit, takes them from the parts in turn.
  private static func fit(_ parts: [[(line: String, properties: Int)]], into rows: Int?) -> [(line: String, properties: Int)] {
    guard var left = rows, left < parts.reduce(0, { $0 + $1.count }) else { return Array(parts.joined()) }
    var counts = parts.map { _ in 0 }
    while left > 0 {
      for index in parts.indices where left > 0 && counts[index] < parts[index].count {
        counts[index] += 1
        left -= 1
      }
    }
    return parts.indices.flatMap { parts[$0].prefix(counts[$0]) }
  }

  private func groups() -> [(name: String, items: [Item])] {
    var groups: [(name: String, rows: [PropertyRow])] = []
    for row in status.rows where row.value != nil && row.rank < 4 {
      if groups.last?.name != row.group { groups.append((row.group, [])) }
      groups[groups.count - 1].rows.append(row)
    }
    return groups.map { ($0.name, items($0.rows)) }.filter { !$0.items.isEmpty }
  }

  private func items(_ rows: [PropertyRow]) -> [Item] {
    let strips = CellStrip.strips(rows).map { strip in
      let lists = rows.filter { CellStrip.accepts($0) && ($0.unit ?? "") == strip.unit }.count
      return Item(name: strip.count, value: strip.range, properties: lists, isWide: true)
    }
    let (series, members) = NumberedSeries.series(rows)
    return strips
      + rows.compactMap { row in
        if let series = series[row.name] { return Item(name: series.name, value: series.range, properties: series.count) }
        guard row.rank < 3, !members.contains(row.name), !CellStrip.accepts(row) else { return nil }
        let value = row.unit.map { "\(row.text) \($0)" } ?? row.text
        return Item(name: row.name, value: Output.oneLine(value), style: Meaning.role(of: row).style, rank: row.rank)
      }
  }

  /// Chooses the columns: as many as fit into the width or, if it is nil, one that is as wide as its longest entry.
  private mutating func layOut(_ groups: [(name: String, items: [Item])]) {
    let hasLabels = (width.map { $0 >= Self.minLabelledWidth } ?? true) && groups.contains { !$0.name.isEmpty }
    labelWidth = hasLabels ? (groups.map(\.name.displayWidth).max() ?? 0) + 2 + Self.gap : 2
    let short = groups.flatMap(\.items).filter { !$0.isWide && $0.value.displayWidth <= Self.minColumn / 2 }
    let longest = (short.map(\.name.displayWidth).max() ?? 0) + Self.gap + (short.map(\.value.displayWidth).max() ?? 0)
    guard let width else {
      columnWidth = max(longest, Self.minColumn)
      return
    }
    let room = max(1, width - labelWidth)
    columnCount = max(1, (room + Self.gap) / (min(longest, Self.minColumn) + Self.gap))
    columnWidth = min(longest, (room + Self.gap) / columnCount - Self.gap)
  }

  private func lines(_ group: String, _ items: [Item]) -> [(line: String, properties: Int)] {
    var lines: [(line: String, properties: Int)] = []
    var used = columnCount
    for item in items {
      let isWide = item.isWide || item.value.displayWidth > columnWidth / 2 && item.displayWidth > columnWidth
      if isWide || used >= columnCount {
        let title = lines.isEmpty && labelWidth > 2 ? group : ""
        lines.append(("  " + paint(title, .bold) + spaces(labelWidth - 2 - title.displayWidth), 0))
        used = 0
      }
      lines[lines.count - 1].line += (used > 0 ? spaces(Self.gap) : "") + (isWide ? wide(item) : cell(item))
      lines[lines.count - 1].properties += item.properties
      used += isWide ? columnCount : 1
    }
    return lines
  }

  /// Name and value at both ends of a column; a name that is too long is truncated in the middle.
  private func cell(_ item: Item) -> String {
    let name = item.name.shortened(to: max(1, columnWidth - item.value.displayWidth - 1))
    return name + spaces(columnWidth - name.displayWidth - item.value.displayWidth) + paint(item.value, item.style)
  }

  private func wide(_ item: Item) -> String {
    (item.name + spaces(Self.gap) + paint(item.value, item.style)).truncated(to: width.map { max(1, $0 - labelWidth) })
  }

  /// Why headline and main values are missing, and for how long: one line for each reason that the header does not show.
  private func reasons() -> [String] {
    guard status.device.links.allSatisfy({ $0.state == "up" }) else { return [] }
    var reasons: [(reason: String, rows: [PropertyRow])] = []
    for row in status.rows where row.value == nil && row.rank < 3 && !row.isNotReported {
      guard let reason = row.reason, !status.device.explains(reason) else { continue }
      if let index = reasons.firstIndex(where: { $0.reason == reason }) {
        reasons[index].rows.append(row)
      } else {
        reasons.append((reason, [row]))
      }
    }
    return reasons.map { reason, rows in
      let names = rows.count > 2 ? "\(rows[0].name) and \(rows.count - 1) more" : rows.map(\.name).joined(separator: ", ")
      // The time for which all of them have been absent.
      let text = Format.absence(reason, for: rows.compactMap { $0.absence(at: status.now) }.min())
      return paint(Output.oneLine("  \(names): \(text)").truncated(to: width), .dim)
    }
  }

  private func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
}
