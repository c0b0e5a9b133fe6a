// Runs a full-screen view of Watch: a loop that handles replies of the daemon, keys and signals, and draws frames.

import Glibc
import Protocols
import Varlink

/// What a full-screen view of Watch shows.
protocol LiveView {
  /// The call whose replies it shows.
  associatedtype Method: VarlinkMethod
  /// The time in seconds after which a frame is outdated even without new values.
  var lifetime: Double { get }
  /// Shows a reply. Returns whether it counts as an update.
  mutating func apply(_ result: Method.Result) -> Bool
  /// Marks the values as outdated; `notice` is the reason.
  mutating func lose(_ notice: String)
  /// Handles a key press; returns false if the user quits.
  mutating func handle(_ key: KeyPress) -> Bool
  /// Why there is nothing to show, which ends the view.
  var failure: Failure? { get }
  /// The frame for a window of this size; nil before the first reply.
  mutating func frame(columns: Int, rows: Int) -> Grid?
}

extension LiveView {
  var failure: Failure? { nil }
}

struct LiveScreen<View: LiveView> {
  private var view: View
  private let screen: FullScreen
  private let terminal = RawTerminal(STDIN_FILENO)
  private var keys = KeyDecoder()
  /// When keys were last received. An ESC that no byte follows within `escapeTime` seconds is the Esc key.
  private var inputAt = 0.0
  private let escapeTime = 0.05
  /// The last frame, and its time.
  private var drawn: (grid: Grid, at: Double)?
  private var needsRedraw = true
  private var hasQuit = false

  init(_ view: View, colour: Bool) {
    self.view = view
    screen = FullScreen(colour: colour)
  }

  /// Shows values until the user quits or `count` updates were received. Returns the lines of the last frame.
  mutating func run(
    _ stream: WatchStream<View.Method>, _ client: Client, _ parameters: View.Method.Parameters, count: Int?
  ) throws -> [String] {
    JobControl.catchSignals()
    WindowChange.catchSignal()
    terminal?.enter()
    defer { leave() }
    let input = terminal.map { [$0.descriptor] } ?? []
    var updates = 0
    try stream.run(client, parameters, watching: { input }) { update in
      if Interrupt.received { return false }
      if JobControl.isPending || JobControl.wasResumed() { suspend() }
      readKeys()
      switch update {
      case .reply(let result):
        if view.apply(result) { updates += 1 }
        needsRedraw = true
      case .lost(let failure):
        view.lose(failure.reconnecting)
        needsRedraw = true
      case .nothing: break
      }
      let isLast = updates >= count ?? .max
      draw(isLast: isLast)
      return !isLast && !hasQuit && !screen.isLost && view.failure == nil
    }
    if let failure = view.failure { throw failure }
    return drawn?.grid.lines() ?? []
  }

  private func leave() {
    screen.restore()
    terminal?.leave()
  }

  /// Restores the terminal, lets the pending signal take effect, and continues on the terminal afterwards.
  private mutating func suspend() {
    if JobControl.isPending { JobControl.handlePending { leave() } } else { screen.restore() }
    terminal?.enter()
    needsRedraw = true
    drawn = nil
  }

  private mutating func readKeys() {
    guard let terminal else { return }
    var entry = pollfd(fd: terminal.descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 0) > 0 else {
      if Clock.monotonic - inputAt >= escapeTime, let key = keys.finishEscape() { handle(key) }
      return
    }
    inputAt = Clock.monotonic
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = read(terminal.descriptor, &bytes, bytes.count)
    if count > 0 {
      for key in keys.decode(bytes[..<count]) where !hasQuit { handle(key) }
    } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
      hasQuit = true  // the terminal is closed
    }
  }

  private mutating func handle(_ key: KeyPress) {
    if key == .control("L") { screen.repaint() } else { hasQuit = !view.handle(key) }
    needsRedraw = true
  }

  private mutating func draw(isLast: Bool) {
    let now = Clock.monotonic
    let window = Terminal.window
    let isReady = screen.isReady(at: now)
    let isOld = drawn.map { ($0.grid.columns, $0.grid.rows) != window || now - $0.at >= view.lifetime } ?? true
    guard isLast || isReady && (needsRedraw || isOld), let grid = view.frame(columns: window.columns, rows: window.rows) else { return }
    if isReady { screen.draw(grid, at: now) }
    drawn = (grid, now)
    needsRedraw = false
  }
}

extension Contract.Watch.Result {
  /// Whether it is more than a heartbeat or an event.
  var hasValues: Bool { snapshot != nil || changes != nil }
}
