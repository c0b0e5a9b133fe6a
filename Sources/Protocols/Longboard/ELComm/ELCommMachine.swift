// The `longboard` machine for Torq's Arduino and its ELComm protocol. As built the host sends one byte and the board responds; as
// documented the board sends and the host responds with the buzzer's number. At most one byte or response is in flight, off is the
// first message on a new link, and values that the board marks as unknown are absent. What is due next follows from the state, in
// `advance`.
// Source: ProjectTORQ.ino and the app's ELCommunicationProtocol.swift, BLEDevice.swift; the seed document for `documented`.

/// Communicates with a longboard over ELComm.
public struct ELCommMachine: Machine {
  /// Which side sends first.
  enum Dialect: String, Sendable {
    case asBuilt = "as-built"
    case documented
  }

  /// The state of the machine. Each case carries only what is valid in it.
  enum State {
    /// No link: nothing is due.
    case down(String)
    /// The dialect is unknown: nothing is sent until the board has been quiet up to then, so that a response to an earlier byte is not
    /// mistaken for one to the probe.
    case draining(until: Instant)
    /// A probe of two characters is in flight; the number of responses identifies the dialect.
    case probing(Probe)
    /// As built: a byte is in flight.
    case asking(Poll)
    /// As built: the board has responded to the byte that was sent then.
    case resting(asked: Instant)
    /// As documented: a message of the board is expected until then, or must be answered.
    case attending(until: Instant, owesAnswer: Bool)
    /// Shutdown: the remaining off messages, and when the next one is due.
    case stopping(left: Int, due: Instant)
  }

  /// A byte without a response.
  struct Poll {
    let byte: UInt8
    /// The buzzer's requested state when it was sent.
    let wish: Int
    let sent: Instant
    /// The number of responses that may still arrive, including those to polls that timed out.
    var owed: Int
    var wasAnswered = false
  }

  public let schema: Schema
  let settings: ELCommSettings
  var state = State.down("the link is not up yet")
  /// The detected or configured dialect. It is kept over links and restarts as a hint, which one probe confirms.
  var dialect: Dialect?
  var decoder = ELCommDecoder()
  var buzzer: ELCommBuzzer
  var keeping = ELCommKeeping()
  var timing: Timing
  var counters = Counters()
  var condition = Condition.waiting
  /// The write in flight, its time, and the buzzer change that it carries.
  var sending: (id: SendID, at: Instant, wish: Int?)?
  var lastSendID: SendID = 0
  /// Why the last write failed.
  var unsent: String?
  var lastByteAt: Instant = .min
  /// When the last message arrived.
  var lastHeard: Instant = .min
  var cameUpAt: Instant = .min
  /// When the last byte or response was sent; `.min` on a new link.
  var lastSpoke: Instant = .min
  /// How often the board has confirmed that the buzzer is off; then polls no longer repeat it.
  var offsHeard = 0
  /// Consecutive timeouts.
  var misses = 0
  /// The result of the last probe on this link, or the hint: two equal ones in a row decide.
  var guess: Dialect?
  /// The last probe got no response, so its responses may still arrive.
  var isProbeOpen = false
  /// Messages that arrived while nothing was sent.
  var unasked = 0
  var message: ELCommMessage?
  /// Last-will frames are set for the link.
  var hasWill = false

  struct Counters {
    var messages = 0
    var missed = 0
    /// When they were last published.
    var published: Instant = .min
    /// The invalid runs at the last message, and the last published number.
    var badSince = 0
    var badShown = (runs: 0, length: 0)
    /// Consecutive messages without a VESC.
    var mute = 0
    /// The messages in the current second.
    var second: Instant = .min
    var inSecond = 0
    var isFlooded = false
  }

  /// Creates a machine; throws for an invalid option.
  public init(_ setup: Setup) throws(OptionError) {
    settings = try ELCommSettings(setup)
    timing = Timing(period: settings.period)
    buzzer = ELCommBuzzer(limit: settings.buzzerLimit)
    schema = Schema(properties: ELCommSignal.properties(period: settings.period), actions: [Self.buzz])
    dialect = settings.dialect
  }

  public var nextWake: Instant? {
    var due = [buzzer.nextWake, keeping.nextWake]
    switch state {
    case .down: return keeping.nextWake
    case .stopping(let left, let next): return [keeping.nextWake, left > 0 && sending == nil ? next : nil].compactMap(\.self).min()
    case .draining(let until): due.append(until)
    case .probing(let probe): due.append(sending == nil ? probe.sent &+ Self.probeTime : timeout)
    case .asking(let poll): due.append(deadline(of: poll))
    case .resting(let asked): due.append(sending == nil ? nextPoll(after: asked) : timeout)
    case .attending(let until, let owesAnswer): due.append(owesAnswer ? sending == nil ? nextAnswer : timeout : until)
    }
    if decoder.isOpen, !decoder.buffer.isEmpty { due.append(lastByteAt &+ Self.closing) }
    return due.compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    // Overdue messages must not be sent over a lost link.
    case .linkChanged(.main, _), .stopping: break
    default: expire(at: now, &effects)
    }
    switch input {
    case .started(let restored, _): restore(restored, &effects)
    case .linkChanged(.main, .up): linkCameUp(at: now, &effects)
    case .linkChanged(.main, .down(let reason)): linkWentDown(reason, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .sent(let id, let failure): sent(id, failure, at: now, &effects)
    case .stored(let key, let failure): keeping.stored(key, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id):
      buzzer.cancel(id)
      keeping.cancel(id)
    case .stopping: stop(at: now, &effects)
    case .wake, .linkChanged, .received, .observed, .response, .rows, .time, .leaseBegan, .leaseEnded: break
    }
    advance(at: now, &effects)
    keeping.advance(at: now, &effects)
    leaveWill(&effects)
  }

  /// Sends what is due, if the link is free.
  private mutating func advance(at now: Instant, _ effects: inout Effects) {
    guard sending == nil else { return }
    switch state {
    case .resting(let asked) where now >= nextPoll(after: asked): ask(owing: 0, at: now, &effects)
    case .attending(_, owesAnswer: true) where now >= nextAnswer: answer(at: now, &effects)
    case .stopping(let left, let due) where left > 0 && now >= due: sayLastWord(left: left - 1, at: now, &effects)
    default: break
    }
  }

  /// When the next byte may be sent: at the configured rate, and sooner for a change of the buzzer.
  private func nextPoll(after asked: Instant) -> Instant {
    asked &+ (buzzer.isHeard ? settings.period : min(settings.period, ELCommSettings.minPeriod))
  }

  /// At once, but with a limit for a board that responds immediately.
  private var nextAnswer: Instant { lastSpoke == .min ? .min : lastSpoke &+ Self.breath }

  /// The timeout of a write.
  var timeout: Instant { (sending?.at ?? 0) &+ Self.linkTimeout }

  func deadline(of poll: Poll) -> Instant { poll.sent &+ Self.replyTimeout }

  var isUp: Bool { if case .down = state { false } else { true } }

  mutating func send(_ bytes: [UInt8], wish: Int?, at now: Instant, _ effects: inout Effects) {
    lastSendID &+= 1
    sending = (lastSendID, now, wish)
    lastSpoke = now
    effects.send(.main, bytes, lastSendID)
  }

  /// The timeout of the response to a byte.
  static let replyTimeout: Nanoseconds = 400 * .millisecond
  /// How long a documented board may be silent.
  static let boardTimeout: Nanoseconds = .second
  static let linkTimeout: Nanoseconds = 5 * .second
  /// The maximum pause before additional fields.
  static let closing: Nanoseconds = 50 * .millisecond
  /// The maximum pause within a message.
  static let gap: Nanoseconds = 250 * .millisecond
  static let breath: Nanoseconds = 20 * .millisecond
}
