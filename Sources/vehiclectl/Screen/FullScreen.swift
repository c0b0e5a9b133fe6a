// Shows a grid on the whole terminal: alternate screen, hidden cursor, one write per frame, at most ten frames a second. A slower terminal
// skips frames instead of delaying the program. Restores the terminal at the end.

import Glibc

final class FullScreen {
  /// The minimum time between two frames in seconds.
  static let period = 0.1
  /// The time in seconds to wait for a slow terminal to accept the sequences that restore it.
  private static let leaveTimeout = 0.5
  /// Selects the alternate screen, without wrapping at the last column, and hides the cursor.
  private static let enter = "\u{1b}[?1049h\u{1b}[?7l\u{1b}[?25l"
  /// Reverts `enter`.
  private static let leave = "\u{1b}[m\u{1b}[?7h\u{1b}[?1049l\u{1b}[?25h"

  /// Turns reports of a lost focus on and off (DEC private mode 1004, which terminals without it ignore).
  private static let (followFocus, ignoreFocus) = ("\u{1b}[?1004h", "\u{1b}[?1004l")

  private let colour: Bool
  private let reportsFocus: Bool
  /// stdout opened again, because setting O_NONBLOCK on the inherited descriptor would affect the shell. -1 if it cannot be opened.
  private let own: Int32
  private var descriptor: Int32 { own >= 0 ? own : STDOUT_FILENO }
  /// Bytes that the terminal has not accepted yet.
  private var pending: ArraySlice<UInt8> = []
  /// The frame that the terminal shows, or nil if that is unknown.
  private var shown: Grid?
  private var isEntered = false
  private var lastDrawn = -Double.infinity
  /// Whether the terminal is gone.
  private(set) var isLost = false

  init(colour: Bool, reportsFocus: Bool = false) {
    self.colour = colour
    self.reportsFocus = reportsFocus
    var name = [CChar](repeating: 0, count: 256)
    own = ttyname_r(STDOUT_FILENO, &name, name.count) == 0 ? open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1
  }

  deinit {
    restore()
    if own >= 0 { close(own) }
  }

  /// Whether a frame may be drawn now: the last one was long enough ago, and the terminal has accepted all of it.
  func isReady(at now: Double) -> Bool {
    flush()
    return pending.isEmpty && now - lastDrawn >= Self.period
  }

  /// Makes the next `draw` write the whole frame, because other programs may have written to the terminal.
  func repaint() { shown = nil }

  /// Draws a frame; call it only when `isReady`.
  func draw(_ grid: Grid, at now: Double) {
    lastDrawn = now
    if !isEntered { pending += Array((Self.enter + (reportsFocus ? Self.followFocus : "")).utf8) }
    pending += FrameDiff.bytes(from: isEntered ? shown : nil, to: grid, colour: colour)
    isEntered = true
    shown = grid
    flush()
  }

  /// Restores the terminal. The next frame enters the alternate screen again.
  func restore() {
    guard isEntered else { return }
    isEntered = false
    lastDrawn = -.infinity
    pending += Array(((reportsFocus ? Self.ignoreFocus : "") + Self.leave).utf8)
    let deadline = Clock.monotonic + Self.leaveTimeout
    while !isLost, !pending.isEmpty, Clock.monotonic < deadline {
      flush()
      var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      if !pending.isEmpty { poll(&entry, 1, 20) }
    }
    pending = []
  }

  private func flush() {
    while !pending.isEmpty, !isLost {
      var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      if own < 0, poll(&entry, 1, 0) <= 0 { return }
      let count = pending.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        pending = pending.dropFirst(count)
      } else if errno == EAGAIN || errno == EINTR {
        return
      } else {
        isLost = true
      }
    }
  }
}
