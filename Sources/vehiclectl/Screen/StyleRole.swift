// The meaning of a cell or text, which selects its style. Terminals show styles with the 16 standard colours. Without colour, every cell is
// plain.

enum StyleRole: UInt8 {
  case plain, bold, dim
  /// Within its limits; connected.
  case good
  /// Needs attention.
  case warn
  /// A fault, or a link that is down.
  case bad
  /// Neutral colour for bars and graphs.
  case accent
  /// Titles of groups.
  case title
  /// The cursor of a text field.
  case inverse

  /// The escape sequence that selects the style, whatever the current style is.
  var sequence: String {
    switch self {
    case .plain: "\u{1b}[m"
    case .bold: "\u{1b}[0;1m"
    case .dim: "\u{1b}[0;2m"
    case .good: "\u{1b}[0;32m"
    case .warn: "\u{1b}[0;33m"
    case .bad: "\u{1b}[0;1;31m"
    case .accent: "\u{1b}[0;36m"
    case .title: "\u{1b}[0;1;34m"
    case .inverse: "\u{1b}[0;7m"
    }
  }

  /// The style for text that is printed line by line.
  var style: Style {
    switch self {
    case .plain, .accent, .inverse: .plain
    case .bold, .title: .bold
    case .dim: .dim
    case .good: .good
    case .warn: .warning
    case .bad: .bad
    }
  }
}
