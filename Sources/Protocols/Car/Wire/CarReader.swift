// Reads the messages of the car: decodes, checks and counts them, and limits the rate of what they write to the journal. If a type
// occurs more than once in one read, only the last one is published, so that a flood is cheap.
// Source: autott.md §4; AutoTTCommunication in TCP.py, TCPConnection.m.

/// A message from the car.
enum CarReport: Sendable, Equatable {
  /// The interval of tilts.
  case tiltInterval(Nanoseconds)
  /// The car accepts no tilt.
  case tiltStopped
  case modes([UInt8])
  case modeInfo([UInt8])
  case status([UInt8])
  case buttons(isEnabled: Bool)
  /// The interval in seconds; nil: disabled.
  case connectionTest(Double?)
  /// A message that the reader handles, or one with an invalid body: it only shows that the car responds.
  case other
}

struct CarReader: Sendable {
  private static let maxTextLength = 1000

  private var decoder = CarDecoder()
  private var messages = 0
  private var published = (messages: 0, badFrames: 0)
  private var text: String?
  private var isSpeechEnabled: Bool?
  private var eventLimiter = CarLogRateLimiter()
  private var noteLimiter = CarLogRateLimiter()

  /// Buffered bytes of an incomplete message.
  var buffered: Int { decoder.waiting }

  /// Publishes the initial values.
  func start(_ effects: inout Effects) {
    for counter in [CarSignal.messages, .badFrames] { effects.publish(counter, .int(0)) }
    effects.withdraw(.message, "no message from the car yet")
  }

  /// Resets the decoder for a new link.
  mutating func reset() { decoder.reset() }

  /// Takes bytes up to the end of the next message; nil once all are taken.
  mutating func next(_ bytes: inout ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects) -> CarReport? {
    while let item = decoder.take(&bytes) {
      switch item {
      case .dropped(let drop): note(drop.message, at: now, &effects)
      case .message(let message):
        guard let report = read(message, at: now, &effects) else { continue }
        messages &+= 1
        return report
      }
    }
    return nil
  }

  /// Publishes what the messages since the last call say, and the counters.
  mutating func publish(_ effects: inout Effects) {
    if let text { effects.publish(.message, .string(text)) }
    if let isSpeechEnabled { effects.publish(.speechEnabled, .bool(isSpeechEnabled)) }
    (text, isSpeechEnabled) = (nil, nil)
    if published.messages != messages { effects.publish(.messages, .int(messages)) }
    if published.badFrames != decoder.badFrames { effects.publish(.badFrames, .int(decoder.badFrames)) }
    published = (messages, decoder.badFrames)
  }

  /// nil: the type is unknown.
  private mutating func read(_ message: CarInboundMessage, at now: Instant, _ effects: inout Effects) -> CarReport? {
    switch message.type {
    case "Gyro":
      guard let seconds = Self.seconds(message.body) else {
        note("ignored: tilt interval of \"\(CarText.clean(message.body[...], limit: 40))\" s", at: now, &effects)
        return .other
      }
      return .tiltInterval(CarTiltPacer.interval(seconds: seconds))
    case "GyroStop": return .tiltStopped
    case "Modes": return .modes(message.body)
    case "InfoModes": return .modeInfo(message.body)
    case "Status": return .status(message.body)
    case "Message":
      let text = CarText.clean(message.body[...], limit: Self.maxTextLength)
      self.text = text
      report(text, at: now, &effects)
      return .other
    case "ButtonsOn", "ButtonsOff": return .buttons(isEnabled: message.type == "ButtonsOn")
    case "SpeechRecognitionOn", "SpeechRecognitionOff":
      isSpeechEnabled = message.type == "SpeechRecognitionOn"
      return .other
    case "ConnectionTest":
      guard let seconds = Self.seconds(message.body) else {
        note("ignored: keep-alive interval of \"\(CarText.clean(message.body[...], limit: 40))\" s", at: now, &effects)
        return .other
      }
      return .connectionTest(seconds)
    case "ConnectionTestStop": return .connectionTest(nil)
    // The URL of the stream never changes, so there is nothing to reload.
    case "VideoStreamRefresh", "VideoStreamStarted": return .other
    default:
      note("ignored: unknown message type \"\(CarText.clean(Array(message.type.utf8)[...], limit: 32))\"", at: now, &effects)
      return nil
    }
  }

  /// A positive number of seconds.
  private static func seconds(_ body: [UInt8]) -> Double? {
    guard body.count <= 64, let seconds = CarNumber.read(String(decoding: body, as: UTF8.self)), seconds > 0 else { return nil }
    return seconds
  }

  // MARK: The journal

  /// A text from the car, as an event.
  private mutating func report(_ text: String, at now: Instant, _ effects: inout Effects) {
    let (isAllowed, missed) = eventLimiter.take(at: now)
    guard isAllowed else { return }
    if missed > 0 { note("\(missed) more messages of the car were suppressed by the rate limit", at: now, &effects) }
    effects.append(.event(name: "message", text: text.isEmpty ? "(an empty text)" : text))
  }

  /// A note for debugging.
  mutating func note(_ message: @autoclosure () -> String, at now: Instant, _ effects: inout Effects) {
    let (isAllowed, missed) = noteLimiter.take(at: now)
    guard isAllowed else { return }
    if missed > 0 { effects.append(.note("\(missed) more notes were suppressed by the rate limit")) }
    effects.append(.note(message()))
  }
}
