// The `longboard` machine for Torq's Arduino and its ELComm protocol, in both ways of starting: as built the host asks with
// one byte and the board answers each; as documented the board begins and the host answers each message with the buzzer's
// number. It keeps one byte or answer outstanding at most, tells the buzzer to be off before anything else on a new link,
// and never shows as a value what the board marks as unknown. What is due next follows from the state, in `advance`.
// Facts: ProjectTORQ.ino and the app's ELCommunicationProtocol.swift, BLEDevice.swift; the seed document for `documented`.

/// Talks ELComm with a longboard.
public struct ELCommMachine: Machine {
  /// Who begins.
  enum Dialect: String, Sendable {
    case asBuilt = "as-built"
    case documented
  }

  /// What the machine is at. Each case carries just what is valid in it.
  enum State {
    /// No link: nothing is due.
    case down(String)
    /// The dialect is not known: nothing is sent until the board has been quiet up to then, so that no answer to an earlier
    /// byte is taken for one to the probe.
    case draining(until: Instant)
    /// Two characters are out; how many messages answer them tells the dialect.
    case probing(Probe)
    /// As built: a byte is out and the board has yet to answer.
    case asking(Poll)
    /// As built: the board has answered the byte that went out then.
    case resting(asked: Instant)
    /// As documented: a message of the board is awaited until then, or is to be answered.
    case attending(until: Instant, owesAnswer: Bool)
    /// The daemon stops: so many last words are still to be sent, the next one not before then.
    case stopping(left: Int, due: Instant)
  }

  /// A byte that the board has not answered.
  struct Poll {
    let byte: UInt8
    /// What the buzzer was to do when it went out.
    let wish: Int
    let sent: Instant
    /// How many bytes the board may still answer: with those of polls that were given up.
    var owed: Int
    var wasAnswered = false
  }

  public let schema: Schema
  let settings: ELCommSettings
  var state = State.down("the link is not up yet")
  /// What was found, or given. It stays over a new link and a restart as a hint, which one probe confirms.
  var dialect: Dialect?
  var decoder = ELCommDecoder()
  var buzzer: ELCommBuzzer
  var keeping = ELCommKeeping()
  var timing: Timing
  var counters = Counters()
  var condition = Condition.waiting
  /// The send that the link has not taken yet, when it went out, and which of the buzzer's wishes it carries.
  var sending: (id: SendID, at: Instant, wish: Int?)?
  var lastSendID: SendID = 0
  /// Why the last send failed.
  var unsent: String?
  var lastByteAt: Instant = .min
  /// When the last message came.
  var lastHeard: Instant = .min
  var cameUpAt: Instant = .min
  /// When the last byte or answer went out; `.min` on a new link.
  var lastSpoke: Instant = .min
  /// How often the board has confirmed that the buzzer is off; then it is asked without a word of it.
  var offsHeard = 0
  /// Messages that did not come, one after the other.
  var misses = 0
  /// What the last probe on this link told, or the hint: two in a row that agree decide.
  var guess: Dialect?
  /// The last probe was not answered, so its answers may still come.
  var isProbeOpen = false
  /// Messages that came while nothing was sent.
  var unasked = 0
  var message: ELCommMessage?
  /// A will stands for the link.
  var hasWill = false

  struct Counters {
    var messages = 0
    var missed = 0
    /// When they were last published.
    var published: Instant = .min
    /// Bad runs when the last message came, and what was last published of them.
    var badSince = 0
    var badShown = (runs: 0, length: 0)
    /// Messages that told of a VESC that does not answer, in a row.
    var mute = 0
    /// The messages of the running second.
    var second: Instant = .min
    var inSecond = 0
    var isFlooded = false
  }

  /// A machine of these settings, or which option cannot be.
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
    // What is overdue must not be sent over a link that is gone.
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

  /// Sends what is due, if the link is free for it.
  private mutating func advance(at now: Instant, _ effects: inout Effects) {
    guard sending == nil else { return }
    switch state {
    case .resting(let asked) where now >= nextPoll(after: asked): ask(owing: 0, at: now, &effects)
    case .attending(_, owesAnswer: true) where now >= nextAnswer: answer(at: now, &effects)
    case .stopping(let left, let due) where left > 0 && now >= due: sayLastWord(left: left - 1, at: now, &effects)
    default: break
    }
  }

  /// When the next byte may go out: at the rate, and sooner where there is news for the buzzer.
  private func nextPoll(after asked: Instant) -> Instant {
    asked &+ (buzzer.isHeard ? settings.period : min(settings.period, ELCommSettings.minPeriod))
  }

  /// At once, but a board that answers in no time does not take all of ours.
  private var nextAnswer: Instant { lastSpoke == .min ? .min : lastSpoke &+ Self.breath }

  /// When the link must have taken what was sent.
  var timeout: Instant { (sending?.at ?? 0) &+ Self.linkTimeout }

  func deadline(of poll: Poll) -> Instant { poll.sent &+ Self.replyTimeout }

  var isUp: Bool { if case .down = state { false } else { true } }

  mutating func send(_ bytes: [UInt8], wish: Int?, at now: Instant, _ effects: inout Effects) {
    lastSendID &+= 1
    sending = (lastSendID, now, wish)
    lastSpoke = now
    effects.send(.main, bytes, lastSendID)
  }

  /// How long the board may take to answer a byte.
  static let replyTimeout: Nanoseconds = 400 * .millisecond
  /// How long a board that begins may be silent.
  static let boardTimeout: Nanoseconds = .second
  static let linkTimeout: Nanoseconds = 5 * .second
  /// Fields behind the fourth come without a pause.
  static let closing: Nanoseconds = 50 * .millisecond
  /// Pieces of one message are never further apart.
  static let gap: Nanoseconds = 250 * .millisecond
  static let breath: Nanoseconds = 20 * .millisecond
}
