// Draws the screen of a drive on a grid: lease, headline numbers, the last setpoint sent, other values, the keys. No I/O.

import Protocols
import Varlink

struct DriveRenderer {
  private(set) var grid: Grid
  private let display: DriveDisplay
  private let now: Double
  /// The next free row.
  private var y = 0

  /// The widths in cells of a value's name, of a column of values, and of a bar.
  private static let (nameWidth, columnWidth, barWidth) = (22, 38, 20)

  /// Draws the screen for a window of this size.
  init(_ display: DriveDisplay, _ bars: [DriveBar], columns: Int, rows: Int, now: Double) {
    grid = Grid(columns: columns, rows: rows)
    self.display = display
    self.now = now
    drawHeader()
    let headlines = LargeNumbers(width: columns, rows: rows)
    let values = display.rows(largest: headlines.count)
    if !values.large.isEmpty {
      y = headlines.draw(values.large, on: &grid, 0, y + 1, second: display.model.historySlot(of: now))
    }
    y += 1
    for bar in bars { draw(bar) }
    grid.put("  " + display.limitName, 0, y)
    grid.put("\(Int((display.limit * 100).rounded())) %", 18, y, .bold)
    y += 2
    let footer = footer
    draw(values.small, until: rows - footer.count - 1)
    for (index, line) in footer.enumerated() { grid.put(line.text, 0, rows - footer.count + index, line.role) }
  }

  private mutating func drawHeader() {
    var x = grid.put(display.device, 0, y, .bold) + 2
    let (text, role): (String, StyleRole) =
      switch display.lease {
      case .requested: ("requesting the lease", .dim)
      case .held: ("lease held", .good)
      case .lost(let why): ("lease lost: \(why)", .bad)
      }
    x = grid.put(text, x, y, role) + 2
    switch display.row("running").map({ ($0.value, $0.reason) }) {
    case (.bool(true), _)?: x = grid.put("running", x, y, .good) + 2
    case (.bool(false), _)?: x = grid.put("stopped", x, y, .bold) + 2
    // The state is unknown: the car may be moving.
    case (_, let reason?)?: x = grid.put(reason, x, y, .bad) + 2
    default: break
    }
    let silence = display.silence(at: now)
    let age = "last message " + (silence.map { Meaning.age($0) == "now" ? "now" : "\(Meaning.age($0)) ago" } ?? "none yet")
    grid.putRight(age, before: grid.columns, y, silence.map { $0 < 1.5 } == true ? .dim : .warn, width: max(0, grid.columns - x))
    y += 1
  }

  /// A line such as `  throttle         4 A     ████████············  of 10 A`.
  private mutating func draw(_ bar: DriveBar) {
    grid.put("  " + bar.name, 0, y)
    guard let text = bar.text else {
      grid.put("not sent yet", 18, y, .dim)
      y += 1
      return
    }
    grid.put(text, 18, y, bar.share == 0 ? .plain : .bold)
    let share = min(1, abs(bar.share))
    var x = 29
    if bar.isSigned {
      let half = Self.barWidth / 2
      let filled = Int((share * Double(half)).rounded(.up))
      let (some, rest) = (String(repeating: "█", count: filled), String(repeating: "·", count: half - filled))
      let none = String(repeating: "·", count: half)
      x = grid.put(bar.share < 0 ? rest + some : none, x, y, bar.share < 0 ? .accent : .dim)
      x = grid.put("│", x, y)
      x = grid.put(bar.share > 0 ? some + rest : none, x, y, bar.share > 0 ? .accent : .dim)
    } else {
      let (filled, rest) = Glyphs.bar(share, width: Self.barWidth)
      x = grid.put(rest, grid.put(filled, x, y, .accent), y, .dim)
    }
    grid.put(bar.remark, x + 2, y, .dim)
    y += 1
  }

  /// Values flow down one column, then down the next one.
  private mutating func draw(_ rows: [PropertyRow], until end: Int) {
    let height = max(0, end - y)
    for (index, row) in rows.prefix(height * max(1, grid.columns / Self.columnWidth)).enumerated() {
      let (x, y) = (2 + index / height * Self.columnWidth, y + index % height)
      let name = grid.put(row.name.shortened(to: Self.nameWidth - 1), x, y)
      let text = row.value == nil ? "- \(row.reason ?? "")" : row.text + (row.unit.map { " \($0)" } ?? "")
      grid.put(
        text, max(name + 1, x + Self.nameWidth), y, row.value == nil ? .dim : Meaning.role(of: row),
        width: Self.columnWidth - Self.nameWidth - 2)
    }
  }

  private var footer: [(text: String, role: StyleRole)] {
    var lines: [(text: String, role: StyleRole)] = []
    if let event = display.event { lines.append(("  " + event, .warn)) }
    if let stall = display.stall { lines.append(("  stalled: no reply to a setpoint for \(Format.tenths(stall)) s", .bad)) }
    if let remark = display.remark { lines.append(("  " + remark, .bad)) }
    return lines + display.help.map { ($0, .dim) }
  }
}
