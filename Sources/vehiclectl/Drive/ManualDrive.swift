// Manual driving: turns keys, a gamepad or a wheel into setpoints under the lease, at the rate that the device accepts. When the keys are
// released, the setpoint returns to neutral. If the terminal is closed, an input device is unplugged or the process is suspended, the
// vehicle is stopped and the drive ends.

import Protocols
import Varlink

struct ManualDrive {
  enum End { case over, suspended }

  private let common: CommonOptions
  private let output: Output
  private let units: Units
  private let schema: DriveSchema
  /// The deadline of the lease in ms.
  private let deadline: Int
  /// The properties to watch.
  private let watched: [String]
  private var inputs: DriveInputs
  /// The screen, or nil without a terminal that can show it.
  private let screen: FullScreen?
  private var display: DriveDisplay
  private var control: any ManualControl
  private var scheduler = SetPointScheduler(at: 0)
  /// Whether the stick has no effect until it returns to its position at rest, because a stop was requested.
  private var isStickBlocked = false
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

  /// Prepares to drive a device: `control` turns the inputs into setpoints, and `described` is the device's schema.
  init(
    _ common: CommonOptions, _ output: Output, _ schema: DriveSchema, _ control: any ManualControl, described: Contract.Schema?,
    deadline: Int,
    inputs: DriveInputs, screen: FullScreen?
  ) throws(Failure) {
    self.common = common
    units = try common.unitSystem()
    self.output = output
    self.schema = schema
    self.control = control
    self.deadline = deadline
    self.inputs = inputs
    self.screen = screen
    watched = described?.properties.map(\.name) ?? []
    display = DriveDisplay(
      device: schema.device, described.map(units.converted), help: Self.help(schema, control, inputs), limitName: control.limitName,
      limit: control.initialLimit)
  }

  private static func help(_ schema: DriveSchema, _ control: any ManualControl, _ inputs: DriveInputs) -> [String] {
    let isStick = inputs.stick != nil
    var help = [control.help(isStick: isStick), "1 to 9, 0 \(control.limitName)   \(isStick ? "START, " : "")q quit"]
    if CarButton.allCases.contains(where: { schema.property(of: $0) != nil }) {
      help.append(isStick ? "LB, comma: left button   RB, period: right button" : "comma: left button   period: right button")
    }
    if control.needsTimelyRelease, !isStick {
      help.append(
        inputs.keyboard == nil
          ? "key repeat: throttle zero at most \(Value.text(Throttle.releaseTime)) s after the last key event"
          : "keyboard: throttle zero when the key is released")
    }
    return help
  }

  /// Drives until the user quits. After the process was suspended and resumed, drives again with a new lease.
  mutating func run() throws {
    JobControl.catchSignals()
    inputs.terminal?.enter()
    defer { leave() }
    while try drive() == .suspended {
      // The lease is released, so the signal may suspend the process now.
      JobControl.handlePending { leave() }
      inputs.terminal?.enter()
    }
  }

  private func leave() {
    screen?.restore()
    inputs.terminal?.leave()
  }

  /// Drives with one lease, from the request to its end.
  private mutating func drive() throws -> End {
    display.lease = .requested
    display.sent = nil
    control.release()
    continueRequested = false
    var connections = try DriveConnections(schema.device, deadline, watching: watched) { () throws(Failure) in
      try common.connect(output)
    }
    let leaseDeadline = Clock.monotonic + common.replyTimeout
    do {
      while true {
        if JobControl.isPending { return try finish(&connections, .suspended) }
        if quitRequested || Interrupt.received || screen?.isLost == true { return try finish(&connections, .over) }
        if JobControl.wasResumed() {
          screen?.restore()
          inputs.terminal?.enter()
        }
        try receive(&connections)
        if connections.lease == nil, Clock.monotonic >= leaseDeadline { throw Failure.timeout(seconds: common.replyTimeout) }
        try sendDue(&connections)
        draw()
        try readInput(&connections)
      }
    } catch {
      guard let failure = error as? Failure, connections.lease != nil else { throw error }
      if case .rejected(.leaseLost(_, let reason)) = failure {
        display.lease = .lost(reason)
      } else {
        display.lease = .lost(failure.message)
      }
      throw error
    }
  }

  /// Processes replies of the daemon.
  private mutating func receive(_ connections: inout DriveConnections) throws {
    let now = Clock.monotonic
    if try connections.receiveLease() {
      display.lease = .held
      scheduler = SetPointScheduler(at: now)
      control.release()  // keys that were pressed earlier have no effect
      if screen == nil, let stick = inputs.stick {
        output.note("driving \(schema.device) with \(stick.name): \(schema.continues ? "A continue, " : "")B stop, START quit")
      }
    }
    while let update = try connections.receiveUpdate() { display.apply(units.converted(update), at: now, wall: Clock.wall) }
    if let refusal = try connections.receiveStopReply() { showError(refusal, at: now) }
    switch try connections.receiveButtonReply() {
    case .success(let reading)?: display.apply(.init(sequence: 0, changes: [reading]), at: now, wall: Clock.wall)
    case .failure(let error)?: showError(error.message, at: now)
    case nil: break
    }
    scheduler.limit(to: display.number("tilt-rate"), deadline: Double(deadline) / 1000)
    guard scheduler.sentAt != nil else { return }
    let (received, refusal) = try connections.receiveReply()
    if received { scheduler.replyReceived() }
    if received, refusal != nil || now >= errorShownUntil {
      note(refusal ?? inputs.stick.flatMap { $0.isArmed ? nil : "release the stick and pedals once to start driving" })
    }
    display.stall = scheduler.stall(at: now, deadline: Double(deadline) / 1000)
  }

  /// Sends the action `continue` or a setpoint, if one is due and none is in flight.
  private mutating func sendDue(_ connections: inout DriveConnections) throws {
    let now = Clock.monotonic
    guard connections.lease != nil, scheduler.sentAt == nil else { return }
    if continueRequested {
      continueRequested = false
      scheduler.requestSent(at: now)
      return try connections.send(.run(action: "continue", arguments: [:], motion: true))
    }
    guard scheduler.markSentIfDue(at: now) else { return }
    let stick = inputs.stick?.deflection
    if stick == Deflection() { isStickBlocked = false }
    let setPoint = control.setPoint(isStickBlocked ? Deflection() : stick, limit: display.limit, at: now)
    try connections.send(setPoint)
    display.sent = setPoint
  }

  /// Waits for the next event and processes the inputs.
  private mutating func readInput(_ connections: inout DriveConnections) throws {
    let wake = connections.lease == nil ? nil : scheduler.wake
    let others = connections.descriptors
    let ready = Client.wait(for: others + inputs.descriptors, until: min(wake ?? .infinity, Clock.monotonic + FullScreen.period))
    do {
      let events = try inputs.read(Array(ready.dropFirst(others.count)))
      if let keyboard = inputs.keyboard { control.update(keyboard) }
      let now = Clock.monotonic  // one time for all keys that were read at once
      for event in events {
        switch event {
        case .key(let key): try handle(key, at: now, &connections)
        case .button(let press): try handle(press, at: now, &connections)
        case .closed: quitRequested = true
        }
      }
    } catch let failure as Failure {
      _ = try? finish(&connections, .over)
      throw failure
    }
  }

  private mutating func handle(_ key: DriveKey, at now: Double, _ connections: inout DriveConnections) throws {
    switch key {
    case .direction(let direction): control.press(direction, isDown: inputs.keyboard?.isDown(direction) == true, at: now)
    case .stop:
      control.release()
      continueRequested = false
      if schema.stops { try connections.stop() } else { isStickBlocked = true }
    case .go: continueRequested = connections.lease != nil && schema.continues
    case .button(let button):
      guard let property = schema.property(of: button) else { return note("\(schema.device) has no \(button.rawValue) button") }
      try press(property, !(connections.requestedState(of: property) ?? display.isOn(property)), &connections)
    case .limit(let limit): display.limit = limit
    case .focusLost: control.release()
    case .repaint: screen?.repaint()
    case .end: quitRequested = true
    }
  }

  private mutating func handle(_ press: GamepadMapping.Press, at now: Double, _ connections: inout DriveConnections) throws {
    switch press {
    case .go: try handle(DriveKey.go, at: now, &connections)
    case .stop: try handle(DriveKey.stop, at: now, &connections)
    case .end: try handle(DriveKey.end, at: now, &connections)
    case .button(let button, let isDown):
      if let property = schema.property(of: button) { try self.press(property, isDown, &connections) }
    }
  }

  private mutating func press(_ property: String, _ isDown: Bool, _ connections: inout DriveConnections) throws {
    if isDown { pressed.insert(property) } else { pressed.remove(property) }
    try connections.press(property, isDown)
  }

  /// Stops the vehicle, waits for confirmation and releases the buttons; the lease ends with the connections.
  private mutating func finish(_ connections: inout DriveConnections, _ end: End) throws -> End {
    control.release()
    guard connections.lease != nil else { return end }
    let limit = Clock.monotonic + Self.stopTimeout
    if schema.stops {
      if scheduler.sentAt == nil { try connections.send(control.neutral) }
      try connections.stop()
      try connections.finishStopping(until: limit)
    } else {
      try connections.finish(with: control.neutral, hasSetPointInFlight: scheduler.sentAt != nil, until: limit)
    }
    for property in pressed.sorted() where connections.requestedState(of: property) ?? display.isOn(property) {
      try connections.press(property, false)
    }
    pressed = []
    try connections.finishPressing(until: limit)
    return end
  }

  /// Shows an error of Stop or of a button for `errorTime` seconds. Replies to setpoints without an error do not replace it.
  private mutating func showError(_ message: String, at now: Double) {
    note(message)
    errorShownUntil = now + Self.errorTime
  }

  private mutating func note(_ remark: String?) {
    guard remark != display.remark else { return }
    display.remark = remark
    if screen == nil, let remark { output.note(Output.oneLine(remark)) }
  }

  private func draw() {
    let now = Clock.monotonic
    guard let screen, screen.isReady(at: now) else { return }
    let window = Terminal.window
    let frame = DriveRenderer(display, control.bars(display.sent), columns: window.columns, rows: window.rows, now: now)
    screen.draw(frame.grid, at: now)
  }
}
