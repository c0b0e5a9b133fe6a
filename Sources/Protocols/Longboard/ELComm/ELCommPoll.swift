// A byte that was sent to an as-built board, which responds to each byte.

struct ELCommPoll: Sendable {
  let byte: UInt8
  /// The number of the buzzer change that the byte carries.
  let change: Int
  let sent: Instant
  /// The number of responses that may still arrive, including those to polls that timed out.
  private(set) var pendingResponses: Int
  private(set) var wasAnswered = false

  init(byte: UInt8, change: Int, sent: Instant, pendingResponses: Int) {
    (self.byte, self.change, self.sent, self.pendingResponses) = (byte, change, sent, pendingResponses)
  }

  /// Whether the next response cannot be the response to an earlier byte, so that it gives the round-trip time.
  var hasUnambiguousResponse: Bool { pendingResponses == 1 && !wasAnswered }
  var isComplete: Bool { pendingResponses <= 0 }

  mutating func responseReceived() {
    pendingResponses -= 1
    wasAnswered = true
  }
}
