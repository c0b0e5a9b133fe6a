// Dialect detection, if the configuration sets no dialect. A single message does not identify the dialect: a board as built may send it
// in response to an earlier byte, or to output of an HM-10 module. So nothing is sent until the board is quiet. Then two characters are
// sent in one write, and the responses are counted: a board as built responds to each character, a documented board reads them as one
// number.
// Source: ProjectTORQ.ino (one byte per pass, at most 185 ms long; a 64-byte buffer); the project's protocol description for `documented`.

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

  /// How long responses are counted: longer than two passes of the loop of a board as built without its VESC, and shorter than the timeout
  /// of a documented board.
  static let probeTime: Nanoseconds = 500 * .millisecond
  /// After this time without a message the board is quiet: a board as built with pending responses sends the next one earlier.
  static let quietTime: Nanoseconds = 500 * .millisecond
  /// Consecutive probes without a response after which the board counts as silent.
  static let maxProbes = 4
  /// The maximum number of pending responses of a board as built: a full buffer. A board that sends more is documented.
  private static let maxPendingResponses = 64

  /// The result of the last probe on this link, or the assumed dialect; an equal result of the next probe decides.
  private var guess: ELCommDialect?
  /// Whether the last probe got no response, so its responses may still arrive.
  private var isProbeOpen = false
  /// The number of messages that arrived while nothing was sent.
  private var unsolicited = 0

  /// Starts a detection. `hint` is the dialect that is assumed; `isProbeOpen`: responses to earlier bytes may still arrive.
  mutating func begin(hint: ELCommDialect?, isProbeOpen: Bool) { (guess, self.isProbeOpen) = (hint, isProbeOpen) }

  /// Resets the count of unsolicited messages, before waiting until the board is quiet.
  mutating func drain() { unsolicited = 0 }

  /// Counts a message that arrived while nothing was sent; returns true if only a documented board sends so many.
  mutating func countUnsolicited() -> Bool {
    unsolicited += 1
    return unsolicited > Self.maxPendingResponses
  }

  /// Evaluates a probe whose time is over. `badRuns`: the number of invalid runs so far; `isQuiet`: no message has arrived recently.
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
