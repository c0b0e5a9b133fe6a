// A grid of terminal cells that views draw on. No I/O. Text beyond the edges is cut, control characters become spaces, and combining marks
// are dropped.

struct Grid: Equatable {
  struct Cell: Equatable {
    /// NUL in the second cell of a wide character.
    var scalar: Unicode.Scalar = " "
    var role = StyleRole.plain

    var isBlank: Bool { scalar == " " && role != .inverse }
  }

  let columns: Int
  let rows: Int
  /// Row by row.
  private(set) var cells: [Cell]

  /// Creates a blank grid.
  init(columns: Int, rows: Int) {
    (self.columns, self.rows) = (max(1, columns), max(1, rows))
    cells = [Cell](repeating: Cell(), count: self.columns * self.rows)
  }

  /// Draws text to the right of a position, at most `width` cells. Longer text ends with an ellipsis. Returns the column after the text.
  @discardableResult
  mutating func put(_ text: String, _ x: Int, _ y: Int, _ role: StyleRole = .plain, width: Int = .max) -> Int {
    let room = min(width, columns - x)
    guard rows > y, y >= 0, x >= 0, room > 0 else { return x }
    let used = text.utf8.count
    // A text of N bytes has at most N cells.
    if used <= room || text.displayWidth <= room { return put(text.unicodeScalars, x, y, role, end: x + room) }
    let column = put(text.unicodeScalars, x, y, role, end: x + room - 1)
    return put("…".unicodeScalars, column, y, role, end: x + room)
  }

  private mutating func put(_ scalars: String.UnicodeScalarView, _ x: Int, _ y: Int, _ role: StyleRole, end: Int) -> Int {
    var column = x
    for scalar in scalars {
      let (shown, width) = Self.shown(scalar)
      guard column + width <= end else { break }
      if width == 0 { continue }
      set(Cell(scalar: shown, role: role), column, y)
      if width == 2 { set(Cell(scalar: "\0", role: role), column + 1, y) }
      column += width
    }
    return column
  }

  /// Draws text that ends before column `end`, at most `width` cells.
  mutating func putRight(_ text: String, before end: Int, _ y: Int, _ role: StyleRole = .plain, width: Int) {
    put(text, end - min(text.displayWidth, width), y, role, width: width)
  }

  /// Changes the role of cells in a row.
  mutating func paint(_ role: StyleRole, _ x: Int, _ y: Int, width: Int) {
    guard rows > y, y >= 0 else { return }
    for column in max(0, x)..<max(0, x, min(columns, x + width)) { cells[y * columns + column].role = role }
  }

  /// The text of a row, without trailing spaces.
  func line(_ y: Int) -> String {
    let scalars = cells[(y * columns)..<((y + 1) * columns)].lazy.map(\.scalar).filter { $0 != "\0" }
    let text = String(String.UnicodeScalarView(scalars))
    return String(text.prefix(text.count - text.reversed().prefix { $0 == " " }.count))
  }

  private mutating func set(_ cell: Cell, _ x: Int, _ y: Int) {
    let index = y * columns + x
    // The other half of a wide character that is overwritten becomes a space.
    if cells[index].scalar == "\0", cell.scalar != "\0", x > 0 { cells[index - 1].scalar = " " }
    if x + 1 < columns, cells[index + 1].scalar == "\0" { cells[index + 1].scalar = " " }
    cells[index] = cell
  }

  /// What is drawn for a scalar, and its width in cells.
  private static func shown(_ scalar: Unicode.Scalar) -> (Unicode.Scalar, Int) {
    if (0x20..<0x7f).contains(scalar.value) { return (scalar, 1) }
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: return (" ", 1)
    default: return (scalar, scalar.displayWidth)
    }
  }
}
