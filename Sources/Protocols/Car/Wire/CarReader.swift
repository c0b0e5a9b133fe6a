// Reads the messages of the car: decodes, checks and counts them, and limits the rate of their log messages. If one read contains several
// messages of the same type, only the last one is published, so that a flood of messages costs little.
// Source: AutoTT, AutoTTCommunication in TCP.py; AutoTTApp, TCPConnection.m.

/// A message from the car.
enum CarReport: Sendable, Equatable {
  /// The car requests tilts at this interval.
  case tiltInterval(Nanoseconds)
  /// The car accepts no tilt.
  case tiltStopped
  case modeInfo([UInt8])
  case buttons(isEnabled: Bool)
  /// The car requests keep-alives at this interval in seconds; nil if it disables keep-alives.
  case connectionTest(Double?)
  /// A message that `finish` returns in `Latest`, or a message with an invalid body.
  case other
}

struct CarReader: Sendable {
  /// The last message of each type in one read.
  struct Latest: Sendable {
    fileprivate(set) var modes: [UInt8]?
    /// The number of lists of modes in the read.
    fileprivate(set) var modesCount = 0
    fileprivate(set) var status: [UInt8]?
    fileprivate(set) var text: String?
    fileprivate(set) var isSpeechEnabled: Bool?
    fileprivate(set) var hasTilt = false
    fileprivate(set) var hasButtons = false
  }

  private static let maxTextLength = 1000

  private var decoder = CarDecoder()
  private var messages = 0
  private var published = (messages: 0, badFrames: 0)
  private var latest = Latest()
  private var eventLimiter = CarLogRateLimiter()
  private var noteLimiter = CarLogRateLimiter()

  /// The number of buffered bytes of an incomplete message.
  var bufferedCount: Int { decoder.bufferedCount }

  /// Publishes the initial values.
  func publishInitialValues(_ effects: inout Effects) {
    for counter in [CarProperty.messages, .badFrames] { effects.publish(counter, .int(0)) }
    effects.withdraw(.message, "no message from the car yet")
  }

  /// Resets the decoder for a new link.
  mutating func reset() { decoder.reset() }

  /// Removes bytes up to the end of the next message, and returns it; nil when no bytes are left.
  mutating func next(_ bytes: inout ArraySlice<UInt8>, at now: Instant, _ effects: inout Effects) -> CarReport? {
    while let item = decoder.next(&bytes) {
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

  /// Publishes the counters, the text and the speech state after all bytes of a read, and returns the latest messages.
  mutating func finish(_ effects: inout Effects) -> Latest {
    defer { latest = Latest() }
    if let text = latest.text { effects.publish(.message, .string(text)) }
    if let isEnabled = latest.isSpeechEnabled { effects.publish(.speechEnabled, .bool(isEnabled)) }
    if published.messages != messages { effects.publish(.messages, .int(messages)) }
    if published.badFrames != decoder.badFrames { effects.publish(.badFrames, .int(decoder.badFrames)) }
    published = (messages, decoder.badFrames)
    return latest
  }

  /// Interprets a message; nil if its type is unknown.
  private mutating func read(_ message: CarInboundMessage, at now: Instant, _ effects: inout Effects) -> CarReport? {
    switch message.type {
    case "Gyro":
      guard let seconds = Self.seconds(message.body) else {
        note("ignored: tilt interval of \"\(CarText.clean(message.body[...], limit: 40))\" s", at: now, &effects)
        return .other
      }
      latest.hasTilt = true
      return .tiltInterval(CarTiltPacer.interval(seconds: seconds))
    case "GyroStop":
      latest.hasTilt = true
      return .tiltStopped
    case "Modes":
      (latest.modes, latest.modesCount) = (message.body, latest.modesCount + 1)
      return .other
    case "InfoModes": return .modeInfo(message.body)
    case "Status":
      latest.status = message.body
      return .other
    case "Message":
      let text = CarText.clean(message.body[...], limit: Self.maxTextLength)
      latest.text = text
      report(text, at: now, &effects)
      return .other
    case "ButtonsOn", "ButtonsOff":
      latest.hasButtons = true
      return .buttons(isEnabled: message.type == "ButtonsOn")
    case "SpeechRecognitionOn", "SpeechRecognitionOff":
      latest.isSpeechEnabled = message.type == "SpeechRecognitionOn"
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

  /// Parses a positive number of seconds.
  private static func seconds(_ body: [UInt8]) -> Double? {
    guard body.count <= 64, let seconds = CarNumber.read(String(decoding: body, as: UTF8.self)), seconds > 0 else { return nil }
    return seconds
  }

  // MARK: The journal

  /// Emits a text from the car as an event.
  private mutating func report(_ text: String, at now: Instant, _ effects: inout Effects) {
    let (isAllowed, suppressed) = eventLimiter.admit(at: now)
    guard isAllowed else { return }
    if suppressed > 0 { note("\(suppressed) more messages from the car were suppressed by the rate limit", at: now, &effects) }
    effects.append(.event(name: "message", text: text.isEmpty ? "(an empty text)" : text))
  }

  /// Emits a note for debugging.
  mutating func note(_ message: @autoclosure () -> String, at now: Instant, _ effects: inout Effects) {
    let (isAllowed, suppressed) = noteLimiter.admit(at: now)
    guard isAllowed else { return }
    if suppressed > 0 { effects.append(.note("\(suppressed) more log lines were suppressed by the rate limit")) }
    effects.append(.note(message()))
  }
}
