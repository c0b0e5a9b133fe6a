// Long texts in lines of bounded width, broken between words where they have any. Pure. Counts cells of a terminal.

extension String {
  /// The text in lines of at most so many cells; nothing of it is lost but the spaces at which it is broken.
  func wrapped(to width: Int) -> [String] {
    let width = max(2, width)  // a wide character takes two
    var lines: [String] = []
    var line = ""
    for word in split(separator: " ") {
      var rest = String(word)
      if !line.isEmpty, line.cells + 1 + rest.cells <= width {
        line += " " + rest
        continue
      }
      if !line.isEmpty { lines.append(line) }
      while rest.cells > width {
        // Whole characters; one that is wider than the line stands alone.
        var count = rest.count
        while count > 1, rest.prefix(count).description.cells > width { count -= 1 }
        lines.append(String(rest.prefix(count)))
        rest.removeFirst(count)
      }
      line = rest
    }
    return line.isEmpty && !lines.isEmpty ? lines : lines + [line]
  }
}
