// Routes the messages of the car to the components.

extension CarMachine {
  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard session.isUp, !session.isEnding || !confirmation.isReliable || confirmation.owesStop else { return }
    var rest = bytes[...]
    var latest = Latest()
    while let report = reader.next(&rest, at: now, &effects) {
      receive(report, &latest, at: now, &effects)
      carResponded(at: now, &effects)
    }
    if let body = latest.modes {
      if modes.received(body, &effects) { modeQuery.listChanged() }
      camera.responded()
      liveness.answered()
      for _ in 0..<latest.answers { confirm(at: now, &effects) }
    }
    if let body = latest.status { status.received(body, &effects) }
    if latest.hasNewRate { publishTiltRate(&effects) }
    if latest.hasNewButtons, let isEnabled = buttons.isEnabled { publish(.buttonsEnabled, .bool(isEnabled), &effects) }
    reader.publish(&effects)
  }

  /// Which messages of one read are published once.
  private struct Latest {
    var modes: [UInt8]?
    var answers = 0
    var status: [UInt8]?
    var hasNewRate = false
    var hasNewButtons = false
  }

  private mutating func receive(_ report: CarReport, _ latest: inout Latest, at now: Instant, _ effects: inout Effects) {
    switch report {
    case .tiltInterval(let interval):
      driving.ask(interval)
      latest.hasNewRate = true
    case .tiltStopped:
      driving.mute()
      latest.hasNewRate = true
      // The car keeps the last tilt.
      if driving.isHeld { loseLease("the car stopped accepting tilt (GyroStop)", at: now, &effects) }
    case .modes(let body):
      latest.modes = body
      latest.answers += 1
    case .modeInfo(let body):
      if !modeQuery.received(body, modes, &effects) { reader.note("ignored: unexpected description of a mode", at: now, &effects) }
    case .status(let body): latest.status = body
    case .buttons(let isEnabled):
      buttons.isEnabled = isEnabled
      latest.hasNewButtons = true
    case .connectionTest(let seconds): test.requested(seconds: seconds, at: now)
    case .other: break
    }
  }

  /// When the next keep-alive is due; nil: none, or one is queued already.
  var testDue: Instant? {
    guard queue.hasRoom, !queue.commands.contains(where: { $0.purpose == .connectionTest }) else { return nil }
    return test.due
  }

  mutating func testConnection(at now: Instant) {
    guard let due = testDue, now >= due else { return }
    test.queued(at: now)
    _ = queue.add(CarQueuedCommand(.connectionTest, [.connectionTest]))
  }
}
