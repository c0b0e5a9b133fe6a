// Raw terminal input: key by key, without echo. Ctrl-C, Ctrl-Z and Ctrl-\ remain signals. Restores the previous settings.

import CLinux
import Glibc

final class RawTerminal {
  let descriptor: Int32
  /// The settings to restore.
  private let before: termios
  private var isEntered = false

  /// nil if the descriptor is not a terminal.
  init?(_ descriptor: Int32) {
    self.descriptor = descriptor
    var settings = termios()
    guard tcgetattr(descriptor, &settings) == 0 else { return nil }
    before = settings
  }

  deinit { leave() }

  func enter() {
    var raw = before
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | IEXTEN)
    raw.c_lflag |= tcflag_t(ISIG)
    raw.c_iflag &= ~tcflag_t(IXON)  // Ctrl-S would freeze the display
    withUnsafeMutableBytes(of: &raw.c_cc) {
      $0[Int(VMIN)] = 1
      $0[Int(VTIME)] = 0
    }
    tcsetattr(descriptor, TCSAFLUSH, &raw)  // discards earlier input
    isEntered = true
  }

  func leave() {
    guard isEntered else { return }
    isEntered = false
    var settings = before
    tcsetattr(descriptor, TCSAFLUSH, &settings)
  }
}
