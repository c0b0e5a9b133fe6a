// The full-screen view of `watch --frames`: a line for each identifier with count, rate and bytes. Bytes that have just changed are marked.

import Protocols
import Varlink

struct FrameScreen: LiveView {
  typealias Method = Contract.Record

  private let device: String
  private var stream = FrameStream()
  private var table = FrameTable()
  /// When the recording began, in seconds of the monotonic clock.
  private var began: Double?
  private var notice: String?
  /// How often frames are missing because the connection was lost, or the daemon dropped frames.
  private var gaps = 0
  private var showsBits = false
  /// A copy that is shown while the view is frozen, and its time.
  private var frozen: (table: FrameTable, at: Double)?
  private var first = 0
  private var visible = 1
  private(set) var failure: Failure?

  /// How long a change is marked, in seconds.
  private static let markTime = 1.0
  let lifetime = FullScreen.period * 5

  init(device: String) { self.device = device }

  mutating func apply(_ result: Contract.Record.Result) -> Bool {
    notice = nil
    if began == nil { began = Clock.monotonic }
    let now = Clock.monotonic
    do throws(Failure) {
      // The times of one message are those of its arrival.
      try stream.read(result.line, device: device) { table.add($0.frame, at: now) }
    } catch {
      failure = error
    }
    return true
  }

  mutating func lose(_ notice: String) {
    if self.notice == nil { gaps += 1 }
    self.notice = notice
    stream = FrameStream()
  }

  mutating func handle(_ key: KeyPress) -> Bool {
    switch key {
    case .character("q"), .character("Q"), .control("C"), .control("D"): return false
    case .character("b"): showsBits.toggle()
    case .character("c"): table.clear()
    case .character(" "): frozen = frozen == nil ? (table, Clock.monotonic) : nil
    case .up: first -= 1
    case .down: first += 1
    case .pageUp: first -= visible
    case .pageDown: first += visible
    case .home: first = 0
    case .end: first = 1_000_000
    default: break
    }
    return failure == nil
  }

  mutating func frame(columns: Int, rows: Int) -> Grid? {
    guard began != nil, failure == nil else { return nil }
    let (table, now) = frozen ?? (self.table, Clock.monotonic)
    let all = table.rows
    visible = max(1, rows - 3)
    first = max(0, min(first, all.count - visible))
    var grid = Grid(columns: columns, rows: rows)
    let end = grid.put(device, 0, 0, .bold)
    let state = [
      "\(table.total) frames", "\(all.count) identifiers", gaps > 0 ? "\(gaps) interruptions" : nil, frozen == nil ? nil : "frozen", notice,
    ]
    grid.put(state.compactMap { $0 }.joined(separator: " · "), end + 2, 0, notice == nil ? .plain : .bad)
    grid.put("identifier     count   per s  bytes", 0, 1, .title)
    for (line, row) in all[first...].prefix(visible).enumerated() { draw(row, line + 2, now, on: &grid) }
    grid.put("q quit   b bits   c clear   space freeze   ↑↓ scroll", 0, rows - 1, .dim)
    return grid
  }

  private func draw(_ row: FrameTable.Row, _ y: Int, _ now: Double, on grid: inout Grid) {
    grid.put(row.isError ? "error" : row.identifier.text, 0, y, row.isError ? .bad : .plain)
    grid.putRight("\(row.count)", before: 20, y, width: 10)
    // A message that has stopped has no rate.
    let isOver = row.rate.map { now - row.last > 3 / $0 + 1 } ?? true
    grid.putRight(isOver ? "-" : Self.text(row.rate ?? 0), before: 28, y, isOver ? .dim : .plain, width: 7)
    var x = 30
    if row.frame.kind == .remote { grid.put("remote frame", x, y, .dim) }
    for index in 0..<(row.frame.kind == .remote ? 0 : row.frame.count) {
      let byte = row.frame[index]
      if showsBits {
        for bit in 0..<8 { grid.put(byte >> UInt8(7 - bit) & 1 == 1 ? "1" : "0", x + bit, y, role(row, 8 * index + bit, now)) }
        x += 9
      } else {
        let hex = String(byte, radix: 16, uppercase: true)
        let role: StyleRole =
          row.hasChanged(byte: index, since: now - Self.markTime) ? .warn : row.hasChanged(byte: index, since: 0) ? .plain : .dim
        grid.put(hex.count < 2 ? "0" + hex : hex, x, y, role)
        x += 3
      }
    }
  }

  /// Bits that have just changed are marked; bits that never changed are dim.
  private func role(_ row: FrameTable.Row, _ bit: Int, _ now: Double) -> StyleRole {
    row.hasChanged(bit: bit, since: now - Self.markTime) ? .warn : row.hasChanged(bit: bit, since: 0) ? .plain : .dim
  }

  private static func text(_ rate: Double) -> String { Value.text(rate >= 10 ? rate.rounded() : (rate * 10).rounded() / 10) }
}
