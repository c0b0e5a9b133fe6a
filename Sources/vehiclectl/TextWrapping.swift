// Word wrap by terminal cells. No I/O.

extension String {
  /// Wraps the text into lines of at most `width` cells. Splits words that are longer than a line. Runs of spaces become one space.
  func wrapped(to width: Int) -> [String] {
    let width = max(2, width)  // a wide character takes two cells
    var lines: [String] = []
    var line = ""
    for word in split(separator: " ") {
      var rest = String(word)
      if !line.isEmpty, line.displayWidth + 1 + rest.displayWidth <= width {
        line += " " + rest
        continue
      }
      if !line.isEmpty { lines.append(line) }
      while rest.displayWidth > width {
        // A character wider than the line gets its own line.
        var count = rest.count
        while count > 1, rest.prefix(count).description.displayWidth > width { count -= 1 }
        lines.append(String(rest.prefix(count)))
        rest.removeFirst(count)
      }
      line = rest
    }
    return line.isEmpty && !lines.isEmpty ? lines : lines + [line]
  }
}
