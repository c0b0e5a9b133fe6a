// Manual driving: turns keys, a gamepad or a wheel into set-points under the lease, at the rate that the car accepts. When the keys are
// released, the tilt returns to level. If the terminal is closed, the input device is unplugged or the process is suspended, the car is
// stopped and the drive ends.

import Glibc
import Protocols

struct ManualDrive {
  enum End { case over, suspended }

  private let common: CommonOptions
  private let output: Output
  private let schema: DriveSchema
  /// The deadline of the lease in ms.
  private let deadline: Int
  /// The properties to watch.
  private let watched: [String]
  private let input: (any Controls)?
  /// The terminal that keys are read from, if any.
  private let terminal: RawTerminal?
  /// nil if stdout is not a terminal.
  private var screen: Screen?
  private var display: DriveDisplay
  private var keys = KeyDecoder()
  private var steering = Steering()
  private var scheduler = SetPointScheduler(at: 0)
  /// Whether the action `continue` must be sent.
  private var continueRequested = false
  /// The time until which an error of Stop or of a button is shown.
  private var errorShownUntil = 0.0
  private static let errorTime = 4.0
  /// The buttons that this drive pressed and has not released.
  private var pressed: Swift.Set<String> = []
  /// Whether the user has quit.
  private var quitRequested = false
  /// The time in s to wait for the reply to Stop; longer than the daemon waits for the car to confirm it.
  private static let stopTimeout = 3.0

  init(
    _ common: CommonOptions, _ output: Output, _ schema: DriveSchema, watching: [String], deadline: Int, input: (any Controls)?,
    terminal: RawTerminal?, screen: Screen?
  ) {
    self.common = common
    self.output = output
    self.schema = schema
    self.deadline = deadline
    self.input = input
    self.terminal = terminal
    watched = watching
    self.screen = screen
    var help =
      input == nil
      ? ["arrows or WASD: steer   space stop   Enter continue", "1 to 9, 0 tilt limit   q quit"]
      : ["stick or wheel: steer   B, space stop   A, Enter continue", "1 to 9, 0 tilt limit   START, q quit"]
    if ScreenHalf.allCases.contains(where: { schema.button($0) != nil }) {
      help.append(input == nil ? ", left button   . right button" : "LB / , left button   RB / . right button")
    }
    display = DriveDisplay(device: schema.device, help: help)
  }

  /// Drives until the user quits. After the process was suspended and resumed, drives again with a new lease.
  mutating func run() throws {
    JobControl.catchSignals()
    terminal?.enter()
    defer {
      screen?.leave()
      terminal?.leave()
    }
    while try drive() == .suspended {
      // The lease is released, so the signal may suspend the process now.
      JobControl.handlePending {
        screen?.leave()
        terminal?.leave()
      }
      terminal?.enter()
    }
  }

  /// Drives with one lease, from the request to its end.
  private mutating func drive() throws -> End {
    display.lease = .requested
    display.sentTilt = nil
    steering.release()
    continueRequested = false
    var connections = try DriveConnections(schema.device, deadline, watching: watched) { () throws(Failure) in
      try common.connect(output)
    }
    let leaseDeadline = Clock.monotonic + common.replyTimeout
    do {
      while true {
        if JobControl.isPending { return try finish(&connections, .suspended) }
        if quitRequested || Interrupt.received { return try finish(&connections, .over) }
        if JobControl.wasResumed() {
          screen?.leave()
          terminal?.enter()
        }
        try receive(&connections)
        if connections.lease == nil, Clock.monotonic >= leaseDeadline { throw Failure.timeout(seconds: common.replyTimeout) }
        try sendDue(connections)
        draw(last: false)
        try readInput(&connections)
      }
    } catch {
      guard let failure = error as? Failure, connections.lease != nil else { throw error }
      if case .rejected(.leaseLost(_, let reason)) = failure {
        display.lease = .lost(reason)
      } else {
        display.lease = .lost(failure.message)
      }
      draw(last: true)
      throw error
    }
  }

  /// Processes replies of the daemon.
  private mutating func receive(_ connections: inout DriveConnections) throws {
    let now = Clock.monotonic
    if try connections.receiveLease() {
      display.lease = .held
      scheduler = SetPointScheduler(at: now)
      if screen == nil, let input { output.note("driving \(schema.device) with \(input.name): A continue, B stop, START quit") }
    }
    while let update = try connections.receiveUpdate() { display.apply(update, at: now) }
    if let refusal = try connections.receiveStopReply() { showError(refusal, at: now) }
    switch try connections.receiveButtonReply() {
    case .success(let reading)?: display.apply(reading, at: now)
    case .failure(let error)?: showError(error.message, at: now)
    case nil: break
    }
    scheduler.limit(to: display.number("tilt-rate"), deadline: Double(deadline) / 1000)
    guard scheduler.sentAt != nil else { return }
    let (received, refusal) = try connections.receiveReply()
    if received { scheduler.replyReceived() }
    if received, refusal != nil || now >= errorShownUntil {
      note(refusal ?? input.flatMap { $0.isArmed ? nil : "waiting for the stick and pedals to be released once" })
    }
    display.stall = scheduler.stall(at: now, deadline: Double(deadline) / 1000)
  }

  /// Sends the action `continue` or a set-point, if one is due and none is in flight.
  private mutating func sendDue(_ connections: DriveConnections) throws {
    let now = Clock.monotonic
    guard connections.lease != nil, scheduler.sentAt == nil else { return }
    if continueRequested {
      continueRequested = false
      scheduler.requestSent(at: now)
      return try connections.run("continue")
    }
    guard scheduler.markSentIfDue(at: now) else { return }
    let tilt = (input?.heading ?? steering.heading(at: now)).tilt(limit: display.limit)
    try connections.run("tilt", arguments(of: tilt))
    display.sentTilt = tilt
  }

  /// The arguments of `tilt`. Keys and sticks already count from neutral, hence `relative`.
  private func arguments(of tilt: (roll: Double, pitch: Double)) -> [String: Value] {
    var arguments: [String: Value] = ["roll": .float(tilt.roll), "pitch": .float(tilt.pitch)]
    if schema.tiltsRelatively { arguments["relative"] = .bool(true) }
    return arguments
  }

  /// Waits for the next event and processes keys and device input.
  private mutating func readInput(_ connections: inout DriveConnections) throws {
    let wake = connections.lease == nil ? nil : scheduler.wake
    let inputs = [terminal?.descriptor ?? -1, input?.descriptor ?? -1]
    let ready = Client.wait(
      for: connections.descriptors + inputs, until: min(wake ?? .infinity, Clock.monotonic + Screen.period))
    if let terminal, ready[ready.count - 2] {
      var bytes = [UInt8](repeating: 0, count: 256)
      let count = read(terminal.descriptor, &bytes, bytes.count)
      if count > 0 {
        for key in keys.decode(bytes[..<count]).compactMap(Key.init) { try handle(key, &connections) }
      } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
        quitRequested = true  // the terminal is closed
      }
    }
    guard let input, ready[ready.count - 1] else { return }
    do {
      for press in try input.read() { try handle(press, &connections) }
    } catch {
      _ = try? finish(&connections, .over)
      throw error
    }
  }

  private mutating func handle(_ key: Key, _ connections: inout DriveConnections) throws {
    switch key {
    case .direction(let direction): steering.press(direction, at: Clock.monotonic)
    case .stop:
      steering.release()
      continueRequested = false
      try connections.stop()
    case .go: continueRequested = connections.lease != nil
    case .button(let half):
      guard let property = schema.button(half) else { return note("\(schema.device) has no \(half.rawValue) button") }
      try press(property, !(connections.requestedState(of: property) ?? display.isOn(property)), &connections)
    case .limit(let limit): display.limit = limit
    case .end: quitRequested = true
    }
  }

  private mutating func handle(_ press: GamepadMapping.Press, _ connections: inout DriveConnections) throws {
    switch press {
    case .go: try handle(Key.go, &connections)
    case .stop: try handle(Key.stop, &connections)
    case .end: try handle(Key.end, &connections)
    case .button(let half, let isDown): if let property = schema.button(half) { try self.press(property, isDown, &connections) }
    }
  }

  private mutating func press(_ property: String, _ isDown: Bool, _ connections: inout DriveConnections) throws {
    if isDown { pressed.insert(property) } else { pressed.remove(property) }
    try connections.press(property, isDown)
  }

  /// Stops the car, waits for confirmation and releases the buttons; the lease ends with the connections.
  private mutating func finish(_ connections: inout DriveConnections, _ end: End) throws -> End {
    steering.release()
    guard connections.lease != nil else { return end }
    if scheduler.sentAt == nil { try connections.run("tilt", arguments(of: (0, 0))) }
    try connections.stop()
    let limit = Clock.monotonic + Self.stopTimeout
    try connections.finishStopping(until: limit)
    for property in pressed.sorted() where connections.requestedState(of: property) ?? display.isOn(property) {
      try connections.press(property, false)
    }
    pressed = []
    try connections.finishPressing(until: limit)
    return end
  }

  /// Shows an error of Stop or of a button for `errorTime` seconds. Replies to set-points without an error do not replace it.
  private mutating func showError(_ message: String, at now: Double) {
    note(message)
    errorShownUntil = now + Self.errorTime
  }

  private mutating func note(_ remark: String?) {
    guard remark != display.remark else { return }
    display.remark = remark
    if screen == nil, let remark { output.note(Output.oneLine(remark)) }
  }

  private mutating func draw(last: Bool) {
    screen?.draw(last: last) { _ in display.lines(at: Clock.monotonic, paint: output.paint) }
  }
}
