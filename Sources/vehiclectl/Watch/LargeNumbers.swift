// Headline numbers in large digits, side by side, each with its unit, name and graph. No I/O.

struct LargeNumbers {
  /// The number of headline numbers that can be drawn; 0 in small windows.
  let count: Int
  /// 1 for digits of three rows, 2 for digits of five rows.
  private let scale: Int
  private let width: Int
  /// Whether there is room for a blank line below.
  private let hasBlankLine: Bool
  private static let maxCount = 4

  /// Chooses the layout for an area of this width in a window with this number of rows.
  init(width: Int, rows: Int) {
    scale = rows >= 40 && width >= 96 ? 2 : 1
    self.width = width
    hasBlankLine = rows >= WatchRenderer.minRowsForBlankLines
    count = rows >= 20 && width >= 60 ? min(Self.maxCount, width / (scale == 2 ? 42 : 25)) : 0
  }

  /// Draws these numbers from row `y` down. Returns the next free row.
  func draw(_ rows: [PropertyRow], on grid: inout Grid, _ left: Int, _ y: Int, second: Int) -> Int {
    let each = width / max(1, rows.count)
    let height = scale == 2 ? 5 : 3
    for (index, row) in rows.enumerated() {
      let x = left + index * each
      let role: StyleRole = Meaning.role(of: row) == .plain ? .bold : Meaning.role(of: row)
      var end = row.value == nil ? grid.put("– ", x, y + height - 1, .dim) : x
      for (line, text) in Glyphs.large(row.value == nil ? "" : row.shortText, scale: scale).enumerated() {
        end = max(end, grid.put(text, x, y + line, role, width: each - 1))
      }
      grid.put(row.unit ?? "", end, y + height - 1, .dim, width: x + each - end)
      let name = grid.put(row.name.shortened(to: min(each - 1, 24)), x, y + height) + 1
      let step = Glyphs.step(width: x + each - 2 - name)
      if SampleHistory.length / step <= x + each - 2 - name {
        grid.put(Glyphs.sparkline(row.history.samples(step: step, until: second)), name, y + height, .accent)
      }
    }
    return y + height + (hasBlankLine ? 2 : 1)
  }
}
