// Formats tables with aligned columns. No I/O. Measures terminal cells, not bytes: wide characters take two cells, combining marks none.

/// One cell of a table. Control characters in its text are replaced by spaces.
struct Cell: ExpressibleByStringInterpolation {
  var text: String
  var style = Style.plain

  init(_ text: String, _ style: Style = .plain) {
    self.text = Output.oneLine(text)
    self.style = style
  }

  init(stringLiteral text: String) { self.init(text) }
}

/// Rows under column titles.
struct Table {
  enum Alignment { case left, right }

  var titles: [String]
  var alignments: [Alignment]
  var rows: [[Cell]] = []

  /// Creates columns by title; the prefix `>` aligns right.
  init(_ columns: String...) {
    titles = columns.map { $0.hasPrefix(">") ? String($0.dropFirst()) : $0 }
    alignments = columns.map { $0.hasPrefix(">") ? .right : .left }
  }

  /// Creates left-aligned columns with these titles, for the report of an action. Missing titles are empty.
  init(titles: [String], rows: [[Cell]]) {
    let count = ([titles.count] + rows.map(\.count)).max() ?? 0
    self.titles = titles + [String](repeating: "", count: count - titles.count)
    alignments = [Alignment](repeating: .left, count: count)
    self.rows = rows
  }

  /// Shortens texts of the first column so that all columns but the last one fit into this width, but not below `minFirstWidth` cells.
  mutating func shortenFirstColumn(to width: Int, indent: Int) {
    let others = titles.indices.dropFirst().dropLast().map { column in
      ([titles[column]] + rows.compactMap { column < $0.count ? $0[column].text : nil }).map(\.displayWidth).max() ?? 0
    }
    let room = max(Self.minFirstWidth, width - indent - others.reduce(0) { $0 + $1 + 2 })
    for row in rows.indices where rows[row].count > 1 { rows[row][0].text = rows[row][0].text.shortened(to: room) }
  }

  /// The first column is not shortened below this width.
  private static let minFirstWidth = 12

  /// The lines, without empty columns and trailing spaces. With a width, the last column wraps.
  func lines(indent: Int = 0, width: Int? = nil, paint: (String, Style) -> String = { text, _ in text }) -> [String] {
    let header = titles.map { Cell($0, .bold) }
    let withTitles = titles.contains { !$0.isEmpty } ? [header] + rows : rows
    let widths = titles.indices.map { column in
      let filled = rows.contains { column < $0.count && !$0[column].text.isEmpty }
      return filled ? withTitles.map { column < $0.count ? $0[column].text.displayWidth : 0 }.max() ?? 0 : 0
    }
    let shown = titles.indices.filter { widths[$0] > 0 }
    let before = indent + shown.dropLast().reduce(0) { $0 + widths[$1] + 2 }
    return withTitles.flatMap { row -> [String] in
      guard let last = shown.last, last < row.count, !row[last].text.isEmpty, let width, before + row[last].text.displayWidth > width else {
        return [line(row, shown, widths, indent, paint)]
      }
      let isNarrow = width - before < Self.minWrapWidth && shown.count > 1
      let start = isNarrow ? indent + 4 : before
      let parts = row[last].text.wrapped(to: width - start)
      var first = row
      first[last].text = isNarrow ? "" : parts[0]
      let rest = parts.dropFirst(isNarrow ? 0 : 1).map { String(repeating: " ", count: start) + paint($0, row[last].style) }
      return [line(first, shown, widths, indent, paint)] + rest
    }
  }

  /// If the last column would be narrower than this, its text goes on separate lines.
  private static let minWrapWidth = 16

  private func line(_ row: [Cell], _ shown: [Int], _ widths: [Int], _ indent: Int, _ paint: (String, Style) -> String) -> String {
    var line = String(repeating: " ", count: indent)
    var gap = 0
    for column in shown {
      let cell = column < row.count ? row[column] : ""
      let padding = widths[column] - cell.text.displayWidth
      let before = alignments[column] == .right ? padding : 0
      if !cell.text.isEmpty {
        line += String(repeating: " ", count: gap + before) + paint(cell.text, cell.style)
        gap = 0
      } else {
        gap += before
      }
      gap += padding - before + 2
    }
    return line.allSatisfy { $0 == " " } ? "" : line
  }
}

extension String {
  /// The width in terminal cells.
  var displayWidth: Int { unicodeScalars.reduce(0) { $0 + $1.displayWidth } }

  /// The width in terminal cells without colour sequences.
  var visibleWidth: Int {
    guard utf8.contains(0x1b) else { return displayWidth }
    var isSequence = false
    return unicodeScalars.reduce(0) { sum, scalar in
      if scalar == "\u{1b}" { isSequence = true }
      defer { if scalar == "m" { isSequence = false } }
      return isSequence ? sum : sum + scalar.displayWidth
    }
  }

  /// Returns the text, truncated to `limit` cells with an ellipsis at the end. nil means no limit.
  func truncated(to limit: Int?) -> String {
    guard let limit, visibleWidth > limit else { return self }
    return cut(to: max(0, limit - 1)) + "…"
  }

  /// Returns the text, shortened to `limit` cells with an ellipsis in the middle, because the ends of names differ.
  func shortened(to limit: Int) -> String {
    guard limit > 2, displayWidth > limit else { return truncated(to: limit) }
    let end = String(String(reversed()).cut(to: (limit - 1) / 2).reversed())
    return cut(to: limit - 1 - end.displayWidth) + "…" + end
  }

  /// Returns the text cut to `limit` cells. Colour sequences take no cells and are kept.
  func cut(to limit: Int) -> String {
    var used = 0
    var result = String.UnicodeScalarView()
    var isSequence = false
    for scalar in unicodeScalars {
      if scalar == "\u{1b}" { isSequence = true }
      if isSequence {
        result.append(scalar)
        if scalar == "m" { isSequence = false }
      } else if used + scalar.displayWidth <= limit {
        result.append(scalar)
        used += scalar.displayWidth
      } else {
        used = limit + 1
      }
    }
    return String(result)
  }
}

extension Unicode.Scalar {
  /// The width in terminal cells. Source: the wide blocks of Unicode's EastAsianWidth table; small gaps between them count as wide.
  var displayWidth: Int {
    if value < 0x300 { return 1 }
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    switch value {
    case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xa960...0xa97f, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f,
      0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1f64f, 0x1f680...0x1f6ff, 0x1f900...0x1f9ff, 0x20000...0x3fffd:
      return 2
    default: return 1
    }
  }
}
