// A person drives: keys of a terminal, or a stick, become set-points under the lease, at the pace that the car wants. Owns the
// loop over all connections; must never go on for a person who is gone: no keys are level, a terminal that hangs up, a stick
// that is unplugged and a process that is stopped end the drive, and the car stops first.

import Glibc
import Protocols

struct HandDrive {
  enum End { case over, suspended }

  private let common: CommonOptions
  private let output: Output
  private let vocabulary: DriveVocabulary
  /// Milliseconds.
  private let deadline: Int
  private let watched: [String]
  private let input: (any Controls)?
  /// Where keys come from; nil: there are none.
  private let terminal: RawTerminal?
  /// nil: nobody looks.
  private var screen: Screen?
  private var cockpit: Cockpit
  private var keys = Keys()
  private var steering = Steering()
  private var pace = SetPointPace(at: 0)
  /// The driver wants the car to go on, and it was not told yet.
  private var goes = false
  /// How long a refusal of Stop or of a button is shown.
  private var refusalIsShownUntil = 0.0
  private static let refusalTime = 4.0
  /// The buttons that were pressed here and not released.
  private var pressed: Swift.Set<String> = []
  /// The driver wants to end.
  private var ends = false
  /// Longer than the daemon waits for a car to confirm Stop.
  private static let stopTimeout = 3.0

  /// With keys, a picture, and a stick or wheel, as far as there are.
  init(
    _ common: CommonOptions, _ output: Output, _ vocabulary: DriveVocabulary, watching: [String], deadline: Int, input: (any Controls)?,
    terminal: RawTerminal?, screen: Screen?
  ) {
    self.common = common
    self.output = output
    self.vocabulary = vocabulary
    self.deadline = deadline
    self.input = input
    self.terminal = terminal
    watched = watching
    self.screen = screen
    var help =
      input == nil
      ? ["arrows or WASD steer   space stop   Enter continue", "1 to 9, 0 top tilt   q end"]
      : ["stick or wheel steers   B, space stop   A, Enter continue", "1 to 9, 0 top tilt   START, q end"]
    if ScreenHalf.allCases.contains(where: { vocabulary.button($0) != nil }) {
      help.append(input == nil ? ", left button   . right button" : "LB, comma left button   RB, dot right button")
    }
    cockpit = Cockpit(device: vocabulary.device, help: help)
  }

  /// Drives until somebody ends it, going on anew after each time that the process was stopped.
  mutating func run() throws {
    JobControl.catchSignals()
    terminal?.enter()
    defer {
      screen?.leave()
      terminal?.leave()
    }
    while try drive() == .suspended {
      // The lease is given back: now the signal may do its work.
      JobControl.obey {
        screen?.leave()
        terminal?.leave()
      }
      terminal?.enter()
    }
  }

  /// One lease, from asking for it to its end.
  private mutating func drive() throws -> End {
    cockpit.lease = .awaited
    cockpit.sent = nil
    steering.release()
    goes = false
    var lines = try DriveConnections(vocabulary.device, deadline, watching: watched) { () throws(Failure) in try common.connect(output) }
    let giveUp = Clock.monotonic + common.replyTimeout
    do {
      while true {
        if JobControl.isDue { return try leave(&lines, .suspended) }
        if ends || Interrupt.came { return try leave(&lines, .over) }
        if JobControl.wentOn() {
          screen?.leave()
          terminal?.enter()
        }
        try hear(&lines)
        if lines.lease == nil, Clock.monotonic >= giveUp { throw Failure.timeout(seconds: common.replyTimeout) }
        try say(lines)
        draw(last: false)
        try feel(&lines)
      }
    } catch {
      guard let failure = error as? Failure, lines.lease != nil else { throw error }
      if case .refused(.leaseLost(_, let reason)) = failure {
        cockpit.lease = .lost(reason)
      } else {
        cockpit.lease = .lost(failure.message)
      }
      draw(last: true)
      throw error
    }
  }

  /// What came from the daemon.
  private mutating func hear(_ lines: inout DriveConnections) throws {
    let now = Clock.monotonic
    if try lines.hearOfLease() {
      cockpit.lease = .held
      pace = SetPointPace(at: now)
      if screen == nil, let input { output.note("driving \(vocabulary.device) with \(input.name): A continue, B stop, START end") }
    }
    while let news = try lines.news() { cockpit.take(news, at: now) }
    if let refusal = try lines.hearOfStop() { refused(refusal, at: now) }
    switch try lines.hearOfButtons() {
    case .success(let reading)?: cockpit.take(reading, at: now)
    case .failure(let error)?: refused(error.message, at: now)
    case nil: break
    }
    pace.limit(to: cockpit.number("tilt-rate"), deadline: Double(deadline) / 1000)
    guard pace.asked != nil else { return }
    let (came, refusal) = try lines.answer()
    if came { pace.answered() }
    if came, refusal != nil || now >= refusalIsShownUntil {
      note(refusal ?? input.flatMap { $0.isArmed ? nil : "release the stick and the pedals once" })
    }
    cockpit.stall = pace.stall(at: now, deadline: Double(deadline) / 1000)
  }

  /// What is due to the car, unless it still has to answer.
  private mutating func say(_ lines: DriveConnections) throws {
    let now = Clock.monotonic
    guard lines.lease != nil, pace.asked == nil else { return }
    if goes {
      goes = false
      pace.ask(at: now)
      return try lines.run("continue")
    }
    guard pace.send(at: now) else { return }
    let tilt = (input?.heading ?? steering.heading(at: now)).tilt(top: cockpit.top)
    try lines.run("tilt", arguments(of: tilt))
    cockpit.sent = tilt
  }

  /// Keys and sticks count from neutral themselves: a device that would do so once more is told not to.
  private func arguments(of tilt: (roll: Double, pitch: Double)) -> [String: Value] {
    var arguments: [String: Value] = ["roll": .float(tilt.roll), "pitch": .float(tilt.pitch)]
    if vocabulary.tiltsRelatively { arguments["relative"] = .bool(true) }
    return arguments
  }

  /// Waits for whatever comes first, and takes what the driver's hands did.
  private mutating func feel(_ lines: inout DriveConnections) throws {
    let wake = lines.lease == nil ? nil : pace.wake
    let hands = [terminal?.descriptor ?? -1, input?.descriptor ?? -1]
    let ready = DriveConnections.wait(
      for: lines.descriptors + hands, until: min(wake ?? .infinity, Clock.monotonic + Screen.period))
    if let terminal, ready[ready.count - 2] {
      var bytes = [UInt8](repeating: 0, count: 256)
      let count = read(terminal.descriptor, &bytes, bytes.count)
      if count > 0 {
        for key in keys.take(bytes[..<count]) { try obey(key, &lines) }
      } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
        ends = true  // nobody sits there any more
      }
    }
    guard let input, ready[ready.count - 1] else { return }
    do {
      for press in try input.read() { try obey(press, &lines) }
    } catch {
      _ = try? leave(&lines, .over)
      throw error
    }
  }

  private mutating func obey(_ key: Key, _ lines: inout DriveConnections) throws {
    switch key {
    case .way(let way): steering.press(way, at: Clock.monotonic)
    case .stop:
      steering.release()
      goes = false
      try lines.stop()
    case .go: goes = lines.lease != nil
    case .button(let half):
      guard let property = vocabulary.button(half) else { return note("\(vocabulary.device) has no \(half.rawValue) button") }
      try press(property, !(lines.isAskedToBeDown(property) ?? cockpit.isOn(property)), &lines)
    case .top(let top): cockpit.top = top
    case .end: ends = true
    }
  }

  private mutating func obey(_ press: GamepadMapping.Press, _ lines: inout DriveConnections) throws {
    switch press {
    case .go: try obey(Key.go, &lines)
    case .stop: try obey(Key.stop, &lines)
    case .end: try obey(Key.end, &lines)
    case .button(let half, let isDown): if let property = vocabulary.button(half) { try self.press(property, isDown, &lines) }
    }
  }

  private mutating func press(_ property: String, _ isDown: Bool, _ lines: inout DriveConnections) throws {
    if isDown { pressed.insert(property) } else { pressed.remove(property) }
    try lines.press(property, isDown)
  }

  /// Stops the car and waits until it is told; the lease ends with the connections.
  private mutating func leave(_ lines: inout DriveConnections, _ end: End) throws -> End {
    steering.release()
    guard lines.lease != nil else { return end }
    if pace.asked == nil { try lines.run("tilt", arguments(of: (0, 0))) }
    try lines.stop()
    let limit = Clock.monotonic + Self.stopTimeout
    try lines.finishStopping(until: limit)
    for property in pressed.sorted() where lines.isAskedToBeDown(property) ?? cockpit.isOn(property) { try lines.press(property, false) }
    pressed = []
    try lines.finishPressing(until: limit)
    return end
  }

  /// What is not about set-points stays for a moment, whatever they are answered with.
  private mutating func refused(_ words: String, at now: Double) {
    note(words)
    refusalIsShownUntil = now + Self.refusalTime
  }

  private mutating func note(_ remark: String?) {
    guard remark != cockpit.remark else { return }
    cockpit.remark = remark
    if screen == nil, let remark { output.note(Output.oneLine(remark)) }
  }

  private mutating func draw(last: Bool) {
    screen?.draw(last: last) { _ in cockpit.lines(at: Clock.monotonic, paint: output.paint) }
  }
}
