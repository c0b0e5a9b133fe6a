// Detects the dialect if the configuration does not set one. A single message does not identify the dialect: an as-built board may send
// one in response to an earlier byte, or to output of an HM-10 module. So nothing is sent until the board is quiet. Then two characters are
// sent in one write, and the responses are counted: an as-built board responds to each character, while a documented board reads both as
// one number.
// Source: ProjectTORQ.ino (one byte per loop pass of at most 185 ms; a 64-byte buffer); the project's protocol description for
// `documented`.

struct ELCommDetection: Sendable {
  /// A probe of two characters.
  struct Probe: Sendable {
    /// When the link accepted the probe.
    private(set) var sent: Instant
    /// The number of invalid runs before the probe.
    let badRuns: Int
    private(set) var messages = 0

    init(sent: Instant, badRuns: Int) { (self.sent, self.badRuns) = (sent, badRuns) }

    mutating func writeEnded(at now: Instant) { sent = now }
    mutating func messageReceived() { messages += 1 }
  }

  /// The result of a probe.
  enum ProbeResult: Sendable, Equatable {
    /// No response: probe again.
    case unanswered
    /// The responses may belong to an earlier probe: wait until the board is quiet.
    case drain
    case probe
    case found(ELCommDialect)
  }

  /// How long responses are counted. This is longer than two loop passes of an as-built board without its VESC, and shorter than the
  /// timeout of a documented board.
  static let probeTime: Nanoseconds = 500 * .millisecond
  /// After this time without a message, the board counts as quiet: an as-built board with pending responses sends the next one sooner.
  static let quietTime: Nanoseconds = 500 * .millisecond
  /// The number of consecutive probes without a response after which the board counts as silent.
  static let maxProbes = 4
  /// The maximum number of pending responses of an as-built board: a full buffer. A board that sends more is a documented board.
  private static let maxPendingResponses = 64

  /// The result of the last probe on this link, or the assumed dialect. The dialect is accepted if the next probe has the same result.
  private var guess: ELCommDialect?
  /// Whether the last probe got no response in time, so that its responses may still arrive.
  private var isProbeOpen = false
  /// The number of messages that arrived while nothing was sent.
  private var unsolicited = 0

  /// Starts a detection. `hint`: the assumed dialect; `isProbeOpen`: responses to earlier bytes may still arrive.
  mutating func begin(hint: ELCommDialect?, isProbeOpen: Bool) { (guess, self.isProbeOpen) = (hint, isProbeOpen) }

  /// Resets the count of unsolicited messages, before waiting until the board is quiet.
  mutating func drain() { unsolicited = 0 }

  /// Counts a message that arrived while nothing was sent. Returns true if an as-built board cannot have sent this many.
  mutating func countUnsolicited() -> Bool {
    unsolicited += 1
    return unsolicited > Self.maxPendingResponses
  }

  /// Evaluates a probe at the end of its time. `badRuns`: the number of invalid runs so far; `isQuiet`: no message has arrived recently.
  mutating func evaluate(_ probe: Probe, badRuns: Int, isQuiet: Bool) -> ProbeResult {
    guard probe.messages > 0 else {
      isProbeOpen = true
      return .unanswered
    }
    if isProbeOpen {
      isProbeOpen = false
      return .drain
    }
    // A damaged message is a response as well.
    let responses = probe.messages + badRuns &- probe.badRuns
    let found = responses > 1 ? ELCommDialect.asBuilt : .documented
    if found == guess { return .found(found) }
    guess = found
    return isQuiet ? .probe : .drain
  }
}
