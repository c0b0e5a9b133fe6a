// Handles the messages of the car. If a type occurs more than once in one read, only the last one counts, so that a flood is cheap.
// Source: autott.md §4; AutoTTCommunication in TCP.py, TCPConnection.m.

extension CarMachine {
  private static let maxTextLength = 1000

  mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    guard isUp, !isEnding || !confirmation.isReliable || confirmation.owesStop else { return }
    let heard = (messages, decoder.badFrames)
    var latest = Latest()
    var rest = bytes[...]
    while let item = decoder.take(&rest) {
      switch item {
      case .message(let message): hear(message, &latest, at: now, &effects)
      case .dropped(let drop): note(drop.message, at: now, &effects)
      }
    }
    tell(latest, at: now, &effects)
    if heard.0 != messages { publish(.messages, .int(messages), &effects) }
    if heard.1 != decoder.badFrames { publish(.badFrames, .int(decoder.badFrames), &effects) }
  }

  /// Which messages of one read are reported once.
  private struct Latest {
    var modes: [UInt8]?
    var answers = 0
    var status: [UInt8]?
    var text: String?
    var speech: Bool?
    var hasNewRate = false
    var hasNewButtons = false
  }

  private mutating func hear(_ message: CarInboundMessage, _ latest: inout Latest, at now: Instant, _ effects: inout Effects) {
    switch message.type {
    case "Gyro": latest.hasNewRate = hearInterval(message.body, at: now, &effects) || latest.hasNewRate
    case "GyroStop":
      driving.mute()
      latest.hasNewRate = true
      // The car keeps the last tilt.
      if driving.isHeld { loseLease("the car stopped accepting tilt (GyroStop)", at: now, &effects) }
    case "Modes":
      latest.modes = message.body
      latest.answers += 1
    case "InfoModes": hearModeInfo(message.body, at: now, &effects)
    case "Status": latest.status = message.body
    case "Message":
      let text = CarText.clean(message.body[...], limit: Self.maxTextLength)
      latest.text = text
      tell(text, at: now, &effects)
    case "ButtonsOn", "ButtonsOff":
      buttons.isEnabled = message.type == "ButtonsOn"
      latest.hasNewButtons = true
    case "SpeechRecognitionOn": latest.speech = true
    case "SpeechRecognitionOff": latest.speech = false
    case "ConnectionTest": hearTest(message.body, at: now, &effects)
    case "ConnectionTestStop": test = CarConnectionTest()
    // The URL of the stream never changes, so there is nothing to reload.
    case "VideoStreamRefresh", "VideoStreamStarted": break
    default: return note("ignored: unknown message type \"\(CarText.clean(Array(message.type.utf8)[...], limit: 32))\"", at: now, &effects)
    }
    messages &+= 1
    carResponded(at: now, &effects)
  }

  private mutating func tell(_ latest: Latest, at now: Instant, _ effects: inout Effects) {
    if let body = latest.modes {
      hearModes(body, &effects)
      liveness.answered()
      for _ in 0..<latest.answers { confirm(at: now, &effects) }
    }
    if let body = latest.status { hearStatus(body, at: now, &effects) }
    if let text = latest.text { publish(.message, .string(text), &effects) }
    if let speech = latest.speech { publish(.speechEnabled, .bool(speech), &effects) }
    if latest.hasNewRate { publishTiltRate(&effects) }
    if latest.hasNewButtons, let isEnabled = buttons.isEnabled { publish(.buttonsEnabled, .bool(isEnabled), &effects) }
  }

  /// A text from the car, as an event; rate limited.
  private mutating func tell(_ text: String, at now: Instant, _ effects: inout Effects) {
    let (isAllowed, missed) = texts.take(at: now)
    guard isAllowed else { return }
    if missed > 0 { note("\(missed) more messages of the car were suppressed by the rate limit", at: now, &effects) }
    effects.append(.event(name: "message", text: text.isEmpty ? "(an empty text)" : text))
  }

  private mutating func hearInterval(_ body: [UInt8], at now: Instant, _ effects: inout Effects) -> Bool {
    guard let seconds = CarNumber.read(String(decoding: body.prefix(64), as: UTF8.self)), body.count <= 64, seconds > 0 else {
      note("ignored: tilt interval of \"\(CarText.clean(body[...], limit: 40))\" s", at: now, &effects)
      return false
    }
    driving.ask(CarTiltPacer.interval(seconds: seconds))
    return true
  }

  private mutating func hearModes(_ body: [UInt8], _ effects: inout Effects) {
    modes.learn(names: body)
    if modes.names.isEmpty {
      withdraw(.modes, "the car reported an empty list", &effects)
    } else {
      publish(.modes, .list(modes.names), &effects)
    }
    publishMode(&effects)
    camera.heardModes()
  }

  /// A note for debugging, at most ten times per second.
  mutating func note(_ message: @autoclosure () -> String, at now: Instant, _ effects: inout Effects) {
    let (isAllowed, missed) = notes.take(at: now)
    guard isAllowed else { return }
    if missed > 0 { effects.append(.note("\(missed) more notes were suppressed by the rate limit")) }
    effects.append(.note(message()))
  }
}
