// A terminal that is redrawn in place, in one write per frame so that it does not flicker. Restores the cursor when it leaves.

import Glibc

struct Screen {
  /// The minimum time between two frames in seconds.
  static let period = 0.1

  private let output: Output
  /// Whether the screen is in use: cleared, and with a hidden cursor.
  private var entered = false
  /// When the last frame was drawn.
  private var lastDrawn = -Double.infinity
  private var height = 0

  init(_ output: Output) { self.output = output }

  /// Draws the lines that `lines` returns for the number of available rows. Skips a frame that follows too soon, unless `last` is true.
  mutating func draw(last: Bool, _ lines: (_ rows: Int) -> [String]) {
    let now = Clock.monotonic
    guard last || now - lastDrawn >= Self.period else { return }
    lastDrawn = now
    let window = Terminal.window
    let shown = lines(max(1, window.rows - 1)).prefix(max(1, window.rows - 1)).map { $0.cut(to: window.columns) }
    height = shown.count
    output.bytes(Array((entered ? "" : "\u{1b}[?25l\u{1b}[2J").utf8) + Array(Self.frame(shown).utf8))
    entered = true
  }

  /// Moves the cursor below the frame and shows it. The next frame clears the screen first.
  mutating func leave() {
    guard entered else { return }
    entered = false
    lastDrawn = -.infinity
    output.bytes(Array("\u{1b}[\(height + 1);1H\u{1b}[J\u{1b}[?25h".utf8))
  }

  /// The escape sequences of a frame: home; each line, cleared to its end; clear to the end of the screen.
  static func frame(_ lines: [String]) -> String {
    "\u{1b}[H" + lines.map { $0 + "\u{1b}[K\r\n" }.joined() + "\u{1b}[J"
  }
}
