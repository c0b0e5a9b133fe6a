// The loop of the full-screen view: replies of the daemon, keys, signals, frames.

import Glibc
import Protocols
import Varlink

struct WatchScreen {
  private let client: Client
  private let units: Units
  private var model: WatchModel
  private var view: WatchView
  private let screen: FullScreen
  private let terminal: RawTerminal?
  private var keys = KeyDecoder()
  /// When keys were last received. ESC without anything else after `escapeTime` seconds is the key.
  private var inputAt = 0.0
  private static let escapeTime = 0.05
  /// The last frame, and what it was drawn for.
  private var drawn: (grid: Grid, at: Double)?
  private var hasNews = true
  private var hasQuit = false
  /// Numbers whose age is shown in seconds are drawn again after this time.
  private static let ageInterval = 1.0

  init(_ client: Client, _ units: Units, _ output: Output, selecting references: References?) {
    self.client = client
    self.units = units
    model = WatchModel(references)
    view = WatchView(showsAll: references?.areExact == true)
    screen = FullScreen(colour: output.colour)
    terminal = RawTerminal(STDIN_FILENO)
  }

  /// Shows values until the user quits or `count` updates were received. Returns the lines of the last frame. `describe` requests the
  /// schema of a device, on another connection.
  mutating func run(
    _ parameters: Contract.Watch.Parameters, schemas: [Contract.Schema], first: Double, count: Int?,
    describe: (_ device: String) -> Contract.Schema?
  ) throws -> [String] {
    for schema in schemas { model.declare(schema) }
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
        model.apply(units.converted(result), at: Clock.monotonic, wall: Clock.wall)
        for device in model.takeUndeclared() {
          if let schema = describe(device) { model.declare(schema) }
        }
        hasNews = true
        if result.snapshot != nil || result.changes != nil { updates += 1 }
      }
      let isLast = updates >= count ?? .max
      draw(isLast: isLast)
      return !isLast && !hasQuit && !screen.isLost
    }
    return drawn.map { frame in (0..<frame.grid.rows).map(frame.grid.line) } ?? []
  }

  private func leave() {
    screen.restore()
    terminal?.leave()
  }

  /// Restores the terminal, lets the pending signal take effect, and continues on the terminal afterwards.
  private mutating func suspend() {
    let isPending = JobControl.isPending
    if isPending { JobControl.handlePending { leave() } } else { screen.restore() }
    terminal?.enter()
    hasNews = true
    drawn = nil
  }

  private mutating func readKeys() {
    guard let terminal else { return }
    var entry = pollfd(fd: terminal.descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 0) > 0 else {
      if Clock.monotonic - inputAt >= Self.escapeTime, let key = keys.finishEscape() { handle(key) }
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
    hasQuit = !view.handle(key, model, at: Clock.monotonic, wall: Clock.wall)
    hasNews = true
  }

  private mutating func draw(isLast: Bool) {
    let now = Clock.monotonic
    let window = Terminal.window
    let hasChanged = hasNews || drawn.map { ($0.grid.columns, $0.grid.rows) != window || now - $0.at >= Self.ageInterval } ?? true
    guard model.hasStarted, isLast || hasChanged && screen.isReady(at: now) else { return }
    let frame = WatchRenderer(model, view, columns: window.columns, rows: window.rows, now: now, wall: Clock.wall)
    view.noteFrame(visible: frame.visible, total: frame.total)
    if !isLast || screen.isReady(at: now) { screen.draw(frame.grid, at: now) }
    drawn = (frame.grid, now)
    hasNews = false
  }
}
