// A canvas of dots that are drawn as braille characters, two columns and four rows of dots per cell. No I/O.
// Source: the Unicode block Braille Patterns, U+2800 to U+28FF.

struct BrailleCanvas {
  let columns: Int
  let rows: Int
  /// The dots of each cell, row by row.
  private var cells: [UInt8]

  /// The bit of each dot in a cell, by column, then by row from the top.
  private static let bits: [[UInt8]] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]]

  /// Creates an empty canvas of this many cells.
  init(columns: Int, rows: Int) {
    (self.columns, self.rows) = (max(0, columns), max(0, rows))
    cells = [UInt8](repeating: 0, count: self.columns * self.rows)
  }

  /// The width in dots.
  var width: Int { columns * 2 }
  /// The height in dots.
  var height: Int { rows * 4 }

  /// Sets the dots of a column from one row to another; row 0 is the lowest.
  mutating func fill(_ x: Int, _ from: Int, _ to: Int) {
    guard (0..<width).contains(x), from <= to, to >= 0, from < height else { return }
    for y in max(0, from)...min(height - 1, to) {
      let row = height - 1 - y
      cells[row / 4 * columns + x / 2] |= Self.bits[x % 2][row % 4]
    }
  }

  /// The character of a cell; nil if it has no dots.
  func scalar(_ column: Int, _ row: Int) -> Unicode.Scalar? {
    let dots = cells[row * columns + column]
    return dots == 0 ? nil : Unicode.Scalar(0x2800 + UInt32(dots))
  }

  /// Adds the dots of another canvas of the same size.
  mutating func add(_ other: BrailleCanvas) {
    for index in cells.indices where other.cells.indices.contains(index) { cells[index] |= other.cells[index] }
  }
}
