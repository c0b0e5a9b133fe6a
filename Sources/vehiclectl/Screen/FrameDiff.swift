// The bytes that turn one frame on a terminal into the next: only changed cells, with the shortest cursor movements. No I/O.
// Source: ECMA-48; DEC private mode 2026 (synchronized output), which terminals without it ignore.

struct FrameDiff {
  private static let (begin, end) = ("\u{1b}[?2026h", "\u{1b}[?2026l")
  /// Up to this many unchanged cells between changed ones are written again, because a cursor movement takes as many bytes.
  private static let gap = 3

  private let new: Grid
  private let colour: Bool
  private var bytes: [UInt8] = []
  private var role = StyleRole.plain
  /// The position of the cursor, or nil if it is unknown, as after the last column.
  private var cursor: (x: Int, y: Int)?

  /// The bytes that draw the frame `new` on a terminal that shows `old`, or unknown content if `old` is nil. Empty if nothing changed.
  static func bytes(from old: Grid?, to new: Grid, colour: Bool) -> [UInt8] {
    var diff = FrameDiff(new: new, colour: colour)
    let known = old.flatMap { $0.columns == new.columns && $0.rows == new.rows ? $0 : nil }
    if known == nil {
      diff.write("\u{1b}[m\u{1b}[H\u{1b}[2J")
      diff.cursor = (0, 0)
    }
    diff.write(over: known ?? Grid(columns: new.columns, rows: new.rows))
    guard !diff.bytes.isEmpty else { return [] }
    diff.select(.plain)
    return Array(begin.utf8) + diff.bytes + Array(end.utf8)
  }

  private init(new: Grid, colour: Bool) {
    self.new = new
    self.colour = colour
  }

  private mutating func write(over old: Grid) {
    new.cells.withUnsafeBufferPointer { after in
      old.cells.withUnsafeBufferPointer { before in
        for y in 0..<new.rows {
          let row = y * new.columns..<(y + 1) * new.columns
          write(row: y, UnsafeBufferPointer(rebasing: before[row]), UnsafeBufferPointer(rebasing: after[row]))
        }
      }
    }
  }

  private mutating func write(row y: Int, _ before: UnsafeBufferPointer<Grid.Cell>, _ after: UnsafeBufferPointer<Grid.Cell>) {
    let used = (after.lastIndex { !$0.isBlank } ?? -1) + 1
    let usedBefore = (before.lastIndex { !$0.isBlank } ?? -1) + 1
    let erases = usedBefore > used + Self.gap
    let limit = erases ? used : max(used, usedBefore)
    var x = 0
    while x < limit {
      guard differs(before[x], after[x]) else {
        x += 1
        continue
      }
      if after[x].scalar == "\0", x > 0 { x -= 1 }  // a wide character is written as a whole
      move(to: x, y)
      var same = 0
      var stop = x
      for next in x..<limit {
        same = differs(before[next], after[next]) ? 0 : same + 1
        if same > Self.gap { break }
        if same == 0 { stop = next + 1 }
      }
      while stop < limit, after[stop].scalar == "\0" { stop += 1 }
      for cell in after[x..<stop] where cell.scalar != "\0" { put(cell) }
      cursor = stop < new.columns ? (stop, y) : nil
      x = stop
    }
    if erases {
      move(to: used, y)
      select(.plain)
      write("\u{1b}[K")
    }
  }

  /// Whether two cells look different. The role of a blank cell is not visible.
  private func differs(_ before: Grid.Cell, _ after: Grid.Cell) -> Bool {
    before.scalar != after.scalar || (shown(before.role) != shown(after.role) && !(before.isBlank && after.isBlank))
  }

  private func shown(_ role: StyleRole) -> StyleRole { colour ? role : .plain }

  private mutating func put(_ cell: Grid.Cell) {
    if !cell.isBlank || role == .inverse { select(shown(cell.role)) }
    if cell.scalar.isASCII { bytes.append(UInt8(truncatingIfNeeded: cell.scalar.value)) } else { bytes += Array(String(cell.scalar).utf8) }
  }

  private mutating func select(_ next: StyleRole) {
    guard next != role else { return }
    role = next
    write(next.sequence)
  }

  private mutating func move(to x: Int, _ y: Int) {
    if let cursor, cursor.y == y, cursor.x <= x {
      if x > cursor.x { write(x == cursor.x + 1 ? "\u{1b}[C" : "\u{1b}[\(x - cursor.x)C") }
    } else if let cursor, x == 0, y == cursor.y + 1 {
      write("\r\n")
    } else {
      write(x == 0 ? "\u{1b}[\(y + 1)H" : "\u{1b}[\(y + 1);\(x + 1)H")
    }
    cursor = (x, y)
  }

  private mutating func write(_ text: String) { bytes += text.utf8 }
}
