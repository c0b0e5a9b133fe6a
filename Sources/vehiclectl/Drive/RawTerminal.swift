// The terminal while somebody drives: keys come one by one and are not shown. Ctrl-C, Ctrl-Z and Ctrl-\ stay signals, so that
// they work whatever hangs. Must always put back what it found.

import CLinux
import Glibc

final class RawTerminal {
  let descriptor: Int32
  private let before: termios
  private var isEntered = false

  /// nil where the descriptor is no terminal.
  init?(_ descriptor: Int32) {
    self.descriptor = descriptor
    var found = termios()
    guard tcgetattr(descriptor, &found) == 0 else { return nil }
    before = found
  }

  deinit { leave() }

  func enter() {
    var raw = before
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
    raw.c_lflag |= tcflag_t(ISIG)
    raw.c_iflag &= ~tcflag_t(IXON)  // a picture that stands still would look like a car that does
    withUnsafeMutableBytes(of: &raw.c_cc) {
      $0[Int(VMIN)] = 1
      $0[Int(VTIME)] = 0
    }
    tcsetattr(descriptor, TCSAFLUSH, &raw)  // what was typed before meant something else
    isEntered = true
  }

  func leave() {
    guard isEntered else { return }
    isEntered = false
    var found = before
    tcsetattr(descriptor, TCSAFLUSH, &found)
  }
}
