// Draws a plot on a grid of terminal cells: for each panel a title with minimum, mean and maximum, a scale, and a band from the minimum to
// the maximum of each column of dots, so that no spike is lost. Gaps stay empty. No I/O.

extension Plot {
  /// The minimum number of rows of a panel, including its title.
  private static let minPanelRows = 5
  private static let axisRows = 2
  private static let roles: [StyleRole] = [.accent, .good, .warn, .bad]

  /// The height in rows if `rows` are available; more if the panels do not fit.
  func height(rows: Int) -> Int { max(rows, panels.count * Self.minPanelRows + Self.axisRows + (title == nil ? 0 : 1)) }

  /// Draws the plot on a grid of this size, or on a taller one if the panels do not fit.
  func grid(columns: Int, rows: Int) -> Grid {
    var grid = Grid(columns: columns, rows: height(rows: rows))
    draw(on: &grid, y: 0, rows: grid.rows)
    return grid
  }

  /// Draws the plot on these rows.
  func draw(on grid: inout Grid, y first: Int, rows: Int) {
    var y = first
    if let title {
      grid.put(title, 0, y, .dim)
      y += 1
    }
    let count = max(1, panels.count)
    let room = max(0, first + rows - y - Self.axisRows)
    let heights = (0..<count).map { room / count + ($0 < room % count ? 1 : 0) }
    let scales = zip(panels, heights).map { $0.scale(maxTicks: max(2, $1 / 2)) }
    // The column of the vertical axis, to the right of the longest label.
    let axis = max(2, (scales.compactMap { $0?.ticks.map { $0.label.displayWidth }.max() }.max() ?? 0) + 1)
    guard grid.columns - axis - 1 > 4 else { return }
    for (panel, (height, scale)) in zip(panels, zip(heights, scales)) {
      draw(panel, scale, on: &grid, y: y, rows: height, axis: axis)
      y += height
    }
    drawAxis(on: &grid, y, axis)
  }

  private func draw(_ panel: PlotPanel, _ scale: PlotScale?, on grid: inout Grid, y: Int, rows: Int, axis: Int) {
    drawTitle(panel, on: &grid, y, axis)
    let body = rows - 1
    guard body > 0 else { return }
    for row in 0..<body { grid.put("│", axis, y + 1 + row, .dim) }
    let left = axis + 1
    let columns = grid.columns - left
    guard let scale else {
      grid.put("no values", left + 1, y + 1 + body / 2, .dim)
      return
    }
    let row = { (value: Double) in y + 1 + (body * 4 - 1 - Int((scale.position(value) * Double(body * 4 - 1)).rounded())) / 4 }
    if scale.range.lowerBound < 0, scale.range.upperBound > 0 {
      grid.put(String(repeating: "┈", count: columns), left, row(0), .dim)
    }
    var free = Int.max  // ticks are drawn from the lowest to the highest, at most one per row
    for tick in scale.ticks where row(tick.value) < free {
      free = row(tick.value)
      grid.putRight(tick.label, before: axis - 1, free, .dim, width: axis)
      grid.put("┤", axis, free, .dim)
    }
    var all = BrailleCanvas(columns: columns, rows: body)
    for (index, series) in panel.series.enumerated() {
      let (band, mean) = dots(of: series, scale, columns: columns, rows: body)
      all.add(band)
      for line in 0..<body {
        for column in 0..<columns where band.scalar(column, line) != nil {
          guard let scalar = all.scalar(column, line) else { continue }
          // In a panel with a single series, the cells of the mean are brighter than the rest of the band.
          let isBright = panel.series.count > 1 || mean.scalar(column, line) != nil
          grid.put(String(scalar), left + column, y + 1 + line, isBright ? Self.roles[index % Self.roles.count] : .dim)
        }
      }
    }
  }

  /// Draws the names on the left, and the summary of a single series on the right if there is room.
  private func drawTitle(_ panel: PlotPanel, on grid: inout Grid, _ y: Int, _ axis: Int) {
    var x = 0
    for (index, series) in panel.series.enumerated() {
      if index > 0 { x += 2 }
      x = grid.put(series.name, x, y, panel.series.count > 1 ? Self.roles[index % Self.roles.count] : .bold)
      if index == panel.series.count - 1, let unit = series.unit { x = grid.put(" \(unit)", x, y, .dim) }
    }
    guard panel.hasSummary, panel.series.count == 1, let summary = panel.series[0].summary else { return }
    let text = summary.map { "\($0.name) \($0.value)" }.joined(separator: "  ")
    if x + 2 + text.displayWidth <= grid.columns { grid.putRight(text, before: grid.columns, y, .plain, width: text.displayWidth) }
  }

  /// The dots of the band from minimum to maximum, and those of the mean. Adjacent columns of the band are connected.
  private func dots(of series: PlotSeries, _ scale: PlotScale, columns: Int, rows: Int) -> (BrailleCanvas, mean: BrailleCanvas) {
    var band = BrailleCanvas(columns: columns, rows: rows)
    var mean = band
    let top = Double(band.height - 1)
    let dot = { (value: Double) in Int((scale.position(value) * top).rounded()) }
    var last: (x: Int, low: Int, high: Int)?
    for column in series.columns(band.width, in: range) {
      var (low, high) = (dot(column.minimum), dot(column.maximum))
      mean.fill(column.index, dot(column.mean), dot(column.mean))
      if let last, last.x + 1 == column.index {
        if last.high < low { low = min(low, last.high + 1) }
        if last.low > high { high = max(high, last.low - 1) }
      }
      band.fill(column.index, low, high)
      last = (column.index, dot(column.minimum), dot(column.maximum))
    }
    return (band, mean)
  }

  private func drawAxis(on grid: inout Grid, _ y: Int, _ axis: Int) {
    let columns = grid.columns - axis - 1
    grid.put("└" + String(repeating: "─", count: columns), axis, y, .dim)
    var free = 0
    for tick in ticks(columns: columns) {
      let position = (tick.position - range.lowerBound) / (range.upperBound - range.lowerBound)
      let x = axis + 1 + min(columns - 1, Int(position * Double(columns)))
      grid.put("┬", x, y, .dim)
      // Centred below the tick, but within the grid.
      let start = min(max(0, x - (tick.label.displayWidth - 1) / 2), grid.columns - tick.label.displayWidth)
      guard start >= free else { continue }
      free = grid.put(tick.label, start, y + 1, .dim) + 1
    }
  }
}

extension PlotSeries {
  /// Resamples a range of the series to this many intervals. Preserves all minima and maxima.
  func columns(_ count: Int, in range: ClosedRange<Double>) -> [PlotPoint] {
    let size = (range.upperBound - range.lowerBound) / Double(max(1, count))
    guard size > 0, count > 0 else { return [] }
    var columns: [PlotPoint] = []
    var weight = 0.0
    for point in points {
      let from = (start + Double(point.index) * width - range.lowerBound) / size
      let to = from + width / size
      // A narrow interval belongs to the column that contains its middle; a wide one covers all columns whose middle it contains.
      let middle = Int(((from + to) / 2).rounded(.down))
      let first = width <= size ? middle : Int((from + 0.5).rounded(.down))
      let last = width <= size ? middle : Int((to + 0.5).rounded(.down)) - 1
      guard first <= last else { continue }
      for index in max(0, first)...max(0, first, min(count - 1, last)) where index <= last && index < count {
        if let end = columns.indices.last, columns[end].index == index {
          columns[end].minimum = min(columns[end].minimum, point.minimum)
          columns[end].maximum = max(columns[end].maximum, point.maximum)
          weight += 1
          columns[end].mean += (point.mean - columns[end].mean) / weight
          columns[end].last = point.last
        } else {
          var column = point
          column.index = index
          columns.append(column)
          weight = 1
        }
      }
    }
    return columns
  }
}

extension Grid {
  /// The rows as lines of text, without trailing spaces; `paint` styles each part.
  func lines(paint: (String, StyleRole) -> String = { text, _ in text }) -> [String] {
    (0..<rows).map { y in
      let row = cells[(y * columns)..<((y + 1) * columns)]
      let used = (row.lastIndex { !$0.isBlank } ?? row.startIndex - 1) + 1
      var (line, part, role) = ("", String.UnicodeScalarView(), StyleRole.plain)
      for cell in row[..<used] where cell.scalar != "\0" {
        if cell.role != role, !cell.isBlank {
          line += paint(String(part), role)
          (part, role) = (String.UnicodeScalarView(), cell.role)
        }
        part.append(cell.scalar)
      }
      return line + paint(String(part), role)
    }
  }
}
