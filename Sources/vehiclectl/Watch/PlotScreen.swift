// The loop of `watch --plot`: replies of the daemon, keys, signals, frames.

import Glibc
import Protocols
import Varlink

struct PlotScreen {
  private let client: Client
  private let units: Units
  private var plot: LivePlot
  private let zone = Zone.local()
  private let screen: FullScreen
  private let terminal: RawTerminal?
  private var keys = KeyDecoder()
  private var hasQuit = false
  private var last: Grid?

  init(_ client: Client, _ units: Units, _ output: Output, _ plot: LivePlot) {
    self.client = client
    self.units = units
    self.plot = plot
    screen = FullScreen(colour: output.colour)
    terminal = RawTerminal(STDIN_FILENO)
  }

  /// Shows the plot until the user quits or `count` updates were received. Returns the lines of the last frame.
  mutating func run(_ parameters: Contract.Watch.Parameters, first: Double, count: Int?) throws -> [String] {
    JobControl.catchSignals()
    WindowChange.catchSignal()
    terminal?.enter()
    defer { leave() }
    let input = terminal.map { [$0.descriptor] } ?? []
    var updates = 0
    try client.stream(
      Contract.Watch.self, parameters, firstReply: first, tick: FullScreen.period, laterReplies: Client.watchTimeout, watching: { input }
    ) { result in
      if Interrupt.received { return false }
      if JobControl.isPending || JobControl.wasResumed() { suspend() }
      readKeys()
      if let result {
        plot.apply(units.converted(result), at: Clock.wall)
        if result.snapshot != nil || result.changes != nil { updates += 1 }
      }
      let isLast = updates >= count ?? .max
      draw(isLast: isLast)
      return !isLast && !hasQuit && !screen.isLost
    }
    return last.map { $0.lines() } ?? []
  }

  private func leave() {
    screen.restore()
    terminal?.leave()
  }

  /// Restores the terminal, lets the pending signal take effect, and continues on the terminal afterwards.
  private func suspend() {
    if JobControl.isPending { JobControl.handlePending { leave() } } else { screen.restore() }
    terminal?.enter()
  }

  private mutating func readKeys() {
    guard let terminal else { return }
    var entry = pollfd(fd: terminal.descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 0) > 0 else { return }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = read(terminal.descriptor, &bytes, bytes.count)
    if count == 0 || count < 0 && errno != EINTR && errno != EAGAIN { hasQuit = true }  // the terminal is closed
    for key in keys.decode(bytes[..<max(0, count)]) {
      switch key {
      case .character("q"), .character("Q"), .control("C"), .control("D"): hasQuit = true
      case .character("+"), .character("="): plot.zoom(-1)
      case .character("-"): plot.zoom(1)
      case .character(" "): plot.toggleFrozen(at: Clock.wall)
      default: break
      }
    }
  }

  private mutating func draw(isLast: Bool) {
    let now = Clock.monotonic
    guard isLast || screen.isReady(at: now) else { return }
    let window = Terminal.window
    let frame = plot.frame(columns: window.columns, rows: window.rows, now: Clock.wall, zone: zone)
    if !isLast || screen.isReady(at: now) { screen.draw(frame, at: now) }
    last = frame
  }
}
