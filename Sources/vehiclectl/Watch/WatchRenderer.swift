// Draws the view on a grid of any size: tabs or a list of devices, the selected device's header, large numbers, values in columns, a
// footer. No I/O.

import Varlink

struct WatchRenderer {
  /// The frame.
  private(set) var grid: Grid
  /// The number of visible lines.
  private(set) var visible = 1
  /// The number of all lines.
  private(set) var total = 0

  private let model: WatchModel
  private let view: WatchView
  private let now: Double
  private let wall: Double
  /// The column where the selected device starts; the list of devices is to its left.
  private var left = 0
  /// The next free row.
  private var y = 0

  /// The notice that all values are outdated.
  private let outage: String?
  /// The row that shows this notice.
  private var outageRow = 0
  /// The minimum width of a window with a list of devices.
  private static let minListWidth = 110
  /// Windows with fewer rows have no blank lines between groups.
  static let minRowsForBlankLines = 30
  /// The minimum width of a column of values if there are several.
  private static let columnWidth = 54
  private static let gap = 2
  /// The minimum width of the names of values, if there is room.
  private static let nameWidth = 16

  /// Draws the view for a window of this size.
  init(_ model: WatchModel, _ view: WatchView, columns: Int, rows: Int, now: Double, wall: Double) {
    grid = Grid(columns: columns, rows: rows)
    self.model = view.frozen?.model ?? model
    self.view = view
    self.now = view.frozen?.now ?? now
    self.wall = view.frozen?.wall ?? wall
    outage = model.outage
    draw()
    guard outage != nil else { return }
    for row in 0..<(grid.rows - 1) { grid.paint(.dim, 0, row, width: row == outageRow ? left : grid.columns) }
  }

  private mutating func draw() {
    guard let selected = view.selected(of: model) else {
      grid.put("no devices are configured; add one: vehiclectl setup", 1, 0, .dim)
      y = 1
      drawOutage()
      return drawFooter(hidden: 0)
    }
    if grid.columns >= Self.minListWidth, model.devices.count > 1 {
      DeviceList(devices: model.devices, selected: selected).draw(on: &grid)
      left = DeviceList.width + Self.gap
    } else {
      DeviceList(devices: model.devices, selected: selected).drawTabs(on: &grid)
      y = 1
    }
    let device = model.devices[selected]
    drawHeader(device)
    if view.showsHelp {
      drawHelp()
      return drawFooter(hidden: 0)
    }
    let width = grid.columns - left
    let count = max(1, (width + Self.gap) / (Self.columnWidth + Self.gap))
    let columnWidth = (width + Self.gap) / count - Self.gap
    let headlines = LargeNumbers(width: width, rows: grid.rows)
    let isCompact = grid.rows < Self.minRowsForBlankLines
    let lines = WatchLines(device, view, width: columnWidth, largest: headlines.count, isCompact: isCompact, now: now)
    if !lines.headlines.isEmpty { y = headlines.draw(lines.headlines, on: &grid, left, y, second: model.historySlot(of: now)) }
    draw(lines.lines, of: device.device, count, columnWidth)
    drawFooter(hidden: lines.hidden)
  }

  // MARK: Header

  private mutating func drawOutage() {
    guard let outage else { return }
    grid.put(outage, left, y, .warn)
    (outageRow, y) = (y, y + 1)
  }

  /// Name, kind, state, poll rate, warning and link of a device; its problem and the last event below.
  private mutating func drawHeader(_ watched: WatchModel.Watched) {
    let device = watched.device
    let room = grid.columns - left
    var x = grid.put(device.name, left, y, .bold, width: room)
    x = grid.put(" \(device.kind)  ", x, y, .dim)
    if outage != nil {
      // The state of the device and its links is unknown.
      y += 1
      return drawOutage()
    }
    x = grid.put(device.state, x, y, Meaning.role(of: device))
    if let rate = watched.row("poll-rate"), rate.value != nil { x = grid.put("  ● \(rate.text) \(rate.unit ?? "Hz")", x, y, .good) }
    if let warning = watched.warning { x = grid.put("  \(warning)", x, y, .warn) }
    if let holder = device.holder { x = grid.put("  held by \(holder)", x, y, .warn) }
    for link in device.links {
      let duration = Format.duration(wall - Double(link.since) / 1e6)
      let role: StyleRole = link.state == "up" ? .dim : link.state == "down" ? .bad : .warn
      x = grid.put("  \(LinkText.readable(link.url)) \(link.state) \(duration)", x, y, role)
    }
    y += 1
    drawOutage()
    if let problem = device.problem {
      let next = device.nextAttempt(at: wall)
      let whole = problem + next
      let lines = whole.displayWidth <= room ? [whole] : problem.wrapped(to: room) + (next.isEmpty ? [] : [String(next.dropFirst(2))])
      for line in lines.prefix(max(1, grid.rows / 6)) {
        grid.put(line, left, y, device.needsAttention ? .bad : .dim)
        y += 1
      }
    }
    if let (event, at) = model.event, now - at < Double(SampleHistory.length) {
      let text = "\(event.device): \(event.text)"
      grid.put(text, left, y, .warn, width: room - 8)
      grid.putRight(Meaning.age(now - at), before: grid.columns, y, .dim, width: 7)
      y += 1
    }
    if grid.rows >= Self.minRowsForBlankLines { y += 1 }
  }

  // MARK: Values

  /// Lines flow down one column, then down the next one.
  private mutating func draw(_ lines: [WatchLine], of device: Contract.Device, _ count: Int, _ width: Int) {
    let height = max(1, grid.rows - 1 - y)
    visible = height * count
    total = lines.count
    let first = min(view.scroll, max(0, total - visible))
    let names = lines.map { if case .row(let row) = $0 { row.name.displayWidth } else { 0 } }.max() ?? 0
    for (index, line) in lines[first..<min(total, first + visible)].enumerated() {
      let x = left + index / height * (width + Self.gap)
      draw(line, of: device, x, y + index % height, width, names: names)
    }
  }

  private mutating func draw(_ line: WatchLine, of device: Contract.Device, _ x: Int, _ y: Int, _ width: Int, names: Int) {
    switch line {
    case .blank: break
    case .remark(let text): grid.put(text, x, y, .dim, width: width)
    case .title(let text):
      let end = grid.put(text, x, y, .title, width: width)
      grid.put(String(repeating: "─", count: max(0, x + width - end - 1)), end + 1, y, .dim)
    case .cells(let strip):
      let age = Meaning.age(strip.measuredAt.map { now - $0 })
      let end = grid.put(strip.count, x + 2, y, .plain, width: width - 10)
      grid.put(strip.range, end + 2, y, .bold, width: max(0, x + width - 8 - end - 2))
      grid.putRight(age, before: x + width, y, .dim, width: 7)
    case .blocks(let blocks):
      for (index, block) in blocks.enumerated() where index < width - 2 { grid.put(String(block.scalar), x + 2 + index, y, block.role) }
    case .row(let row): draw(row, of: device, x, y, width, names: names)
    }
  }

  /// Draws a value: name, value, unit, bar, graph, age. Narrow columns leave out the graph, then the age. `names` is the width of the
  /// longest name.
  private mutating func draw(_ row: PropertyRow, of device: Contract.Device, _ x: Int, _ y: Int, _ width: Int, names: Int) {
    let hasAge = width >= 40
    let room = width - (hasAge ? 7 : 0)
    let (numberWidth, unitWidth) = (9, 5)
    let name = min(max(names, Self.nameWidth), max(10, room - numberWidth - unitWidth - 4))
    let valueEnd = x + 2 + name + 1 + numberWidth
    grid.put(row.name.shortened(to: name), x + 2, y, row.rank == 4 ? .dim : .plain, width: name)
    if hasAge, row.value != nil { grid.putRight(Meaning.age(row.age(at: now)), before: x + width, y, .dim, width: 6) }
    guard row.value != nil else {
      grid.putRight("–", before: valueEnd, y, .dim, width: 1)
      if let reason = row.reason, !device.explains(reason) { grid.put(reason, valueEnd + 1, y, .dim, width: x + width - valueEnd - 1) }
      return
    }
    guard row.value?.number != nil else {
      // A text also uses the space of the graph.
      let end = x + room
      let isShort = row.text.displayWidth <= numberWidth
      if isShort { return grid.putRight(row.text, before: valueEnd, y, Meaning.role(of: row), width: numberWidth) }
      grid.put(row.text, x + 2 + name + 1, y, Meaning.role(of: row), width: end - (x + 2 + name + 1))
      return
    }
    grid.putRight(row.text, before: valueEnd, y, Meaning.role(of: row), width: numberWidth)
    let unit = grid.put(row.unit ?? "", valueEnd + 1, y, .dim, width: 9)
    drawPicture(row, max(unit, valueEnd + 6) + 1, y, end: x + room - 1)
  }

  /// A bar for a percentage, and the graph of the last minute where there is room.
  private mutating func drawPicture(_ row: PropertyRow, _ x: Int, _ y: Int, end: Int) {
    var x = x
    if let share = Meaning.share(of: row), end - x >= 6 {
      let width = min(10, end - x)
      let (filled, rest) = Glyphs.bar(share, width: width)
      let middle = grid.put(filled, x, y, Meaning.role(ofBar: row))
      x = grid.put(rest, middle, y, .dim) + 1
    }
    let step = Glyphs.step(width: end - x)
    guard end - x >= 6, SampleHistory.length / step <= end - x else { return }
    let samples = row.history.samples(step: step, until: model.historySlot(of: now))
    if samples.contains(where: { $0 != nil }) { grid.put(Glyphs.sparkline(samples), x, y, .accent) }
  }

  // MARK: Footer and help

  private static let keys = [
    ("q", "quit"), ("?", "help"), ("/", "filter"), ("s", "sort"), ("space", "freeze"), ("a", "all"), ("Tab", "device"),
  ]

  private mutating func drawFooter(hidden: Int) {
    let row = grid.rows - 1
    var state: [String] = []
    if view.frozen != nil { state.append("FROZEN") }
    if view.order != .group { state.append("by \(view.order.rawValue)") }
    if hidden > 0 { state.append("\(hidden) hidden") }
    if total > visible {
      let first = min(view.scroll, total - visible)
      state.append("\(first + 1)–\(min(total, first + visible)) of \(total)")
    }
    let text = state.joined(separator: "  ")
    var x = 0
    if view.isTyping || !view.filter.isEmpty {
      x = grid.put("/\(view.filter)", 0, row, .bold)
      if view.isTyping { x = grid.put(" ", x, row, .inverse) }
      x = grid.put(view.isTyping ? "  Enter keeps, Esc clears" : "  Esc clears", x, row, .dim)
    } else {
      for (key, meaning) in Self.keys where x + key.count + meaning.count + 3 < grid.columns - text.displayWidth {
        x = grid.put(key, x, row, .bold)
        x = grid.put(" \(meaning)  ", x, row, .dim)
      }
    }
    grid.putRight(text, before: grid.columns, row, view.frozen != nil ? .warn : .dim, width: max(0, grid.columns - x))
  }

  private static let help = [
    ("q, Ctrl-C", "quit"), ("Tab, →", "next device"), ("Shift-Tab, ←", "previous device"), ("1 to 9", "select a device"),
    ("↑ ↓, PgUp PgDn", "scroll"), ("Home, End", "go to the first or last line"), ("/", "filter by name or group; Esc clears"),
    ("s", "sort: group, name, age (newest first), change (latest first)"), ("space", "freeze the view; values are still received"),
    ("a", "show all: statistics, and what this vehicle does not report"), ("Ctrl-L", "draw the screen again"), ("?", "this help"),
    ("", ""),
    ("▁▃▅▇", "the last minute of a number"), ("██··", "a percentage"), ("now", "age of the value: the time since it was measured"),
    ("●", "poll rate of the device"), ("!", "a problem (red), or a lit MIL or trouble codes (amber)"),
  ]

  private mutating func drawHelp() {
    let column = left + 19
    let lines = Self.help.flatMap { key, meaning -> [(key: String, meaning: String)] in
      let parts = meaning.isEmpty ? [""] : meaning.wrapped(to: max(1, grid.columns - column))
      return parts.enumerated().map { ($0 == 0 ? key : "", $1) }
    }
    (visible, total) = (max(1, grid.rows - 1 - y), lines.count)
    for (key, meaning) in lines.dropFirst(min(view.scroll, max(0, total - visible))).prefix(visible) {
      grid.put(key, left + 2, y, .bold)
      grid.put(meaning, column, y, .plain)
      y += 1
    }
  }
}
