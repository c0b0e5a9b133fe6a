// A terminal that is redrawn in place: from the top left, line by line, then cleared to the end, in one write; nothing
// flickers and nothing scrolls. Must always leave the cursor as it was.

import Glibc

struct Screen {
  /// Faster than this nobody reads.
  static let period = 0.1

  private let output: Output
  private var entered = false
  private var drawn = -Double.infinity
  private var height = 0

  init(_ output: Output) { self.output = output }

  /// Draws what `lines` makes for so many rows, unless the last picture is too young and another will follow.
  mutating func draw(last: Bool, _ lines: (_ rows: Int) -> [String]) {
    let now = Clock.monotonic
    guard last || now - drawn >= Self.period else { return }
    drawn = now
    let window = Terminal.window
    let shown = lines(max(1, window.rows - 1)).prefix(max(1, window.rows - 1)).map { $0.cut(to: window.columns) }
    height = shown.count
    output.bytes(Array((entered ? "" : "\u{1b}[?25l\u{1b}[2J").utf8) + Array(Self.frame(shown).utf8))
    entered = true
  }

  /// Puts the cursor under the picture and shows it again. The next picture begins from nothing.
  mutating func leave() {
    guard entered else { return }
    entered = false
    drawn = -.infinity
    output.bytes(Array("\u{1b}[\(height + 1);1H\u{1b}[J\u{1b}[?25h".utf8))
  }

  /// Home; each line and clear to its end; clear to the end of the screen.
  static func frame(_ lines: [String]) -> String {
    "\u{1b}[H" + lines.map { $0 + "\u{1b}[K\r\n" }.joined() + "\u{1b}[J"
  }
}
