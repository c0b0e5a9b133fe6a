// Confirmation of commands. The list of modes is requested after every Stop, and after commands that make the car ignore others. If a
// command fails in an as-built car (such as Continue in modes in which the car drives autonomously), the car discards the rest of what it
// has read; and while a mode starts the camera, the car ignores commands for two seconds. The car handles messages in order on one thread,
// so the response confirms earlier commands. If the car may have discarded Stop, Stop is sent again after the response, and the next
// response confirms it. Requests without a response are repeated, together with Stop. A response does not identify its request, so
// responses are counted, and those to older requests are ignored.
// Source: AutoTT, TCP.py, Steering.py and Modes.py.

struct CarStopConfirmation: Sendable, Equatable {
  private static let firstInterval: Nanoseconds = 300 * .millisecond
  private static let maxInterval: Nanoseconds = 5 * .second
  /// The number of requests after which a missing confirmation is a fault: 2.1 s after Stop, because a status request takes the car a
  /// second, and 4.5 s after other commands, because the camera takes two seconds to start.
  private static let (maxStopRequests, maxRequests) = (4, 5)
  /// The maximum number of expected responses; if there are more, the earliest requests count as lost.
  private static let maxExpected = 4

  /// The meaning of a response.
  enum Meaning { case nothing, stopAgain, stopConfirmed }

  /// The number of outstanding responses to older requests; the response after them shows that the car accepts commands again. nil if it
  /// accepts them.
  private var responsesBeforeAcceptance: Int?
  /// The number of outstanding responses to older requests; the response after them confirms Stop. nil if no Stop must be confirmed.
  private var responsesBeforeStop: Int?
  /// When the request is repeated; nil if it is not repeated.
  private(set) var due: Instant?
  /// The number of expected responses.
  private var expected: Int
  private var interval = Self.firstInterval
  private var repeats = 0

  /// The state in a new session, in which the car sends its modes `unsolicited` times without a request.
  init(unsolicited: Int = 0) { expected = unsolicited }

  /// Whether the car executes commands, as far as is known.
  var isReliable: Bool { responsesBeforeAcceptance == nil }
  /// Whether a Stop has not been confirmed yet.
  var awaitsStop: Bool { responsesBeforeStop != nil }
  private var isWaiting: Bool { !isReliable || awaitsStop }

  /// Notes that the car may discard commands until the response to the next request.
  mutating func expectLoss() {
    responsesBeforeAcceptance = expected
    resetRepetition()
  }

  /// Notes that Stop is being sent.
  mutating func stopQueued() {
    if isWaiting { due = nil } else { resetRepetition() }
    responsesBeforeStop = expected
  }

  /// Notes that Continue is being sent, after which no confirmation of an earlier Stop is needed.
  mutating func continueSent() {
    responsesBeforeStop = nil
    if isReliable { resetRepetition() }
  }

  /// Notes that the link has accepted a request, and schedules its repetition if a confirmation is awaited.
  mutating func requestSent(at now: Instant) {
    expected = min(expected + 1, Self.maxExpected)
    responsesBeforeAcceptance = responsesBeforeAcceptance.map { min($0, expected - 1) }
    responsesBeforeStop = responsesBeforeStop.map { min($0, expected - 1) }
    guard isWaiting, due == nil else { return }
    due = now &+ interval
    interval = min(interval &* 2, Self.maxInterval)
    repeats &+= 1
  }

  /// Notes that the repetition is queued.
  mutating func requestQueued() { due = nil }

  /// Handles a response, the list of modes.
  mutating func responseReceived(at now: Instant) -> Meaning {
    guard expected > 0 else { return .nothing }
    expected -= 1
    let (accepts, confirms) = (Self.countDown(&responsesBeforeAcceptance), Self.countDown(&responsesBeforeStop))
    if accepts {
      resetRepetition()
      // Stop was sent before the response, so the car may have discarded it.
      if awaitsStop || confirms { responsesBeforeStop = expected }
      return awaitsStop ? .stopAgain : .nothing
    }
    if confirms {
      if isReliable { resetRepetition() }
      return .stopConfirmed
    }
    // The car responds, so the interval restarts at its minimum.
    if due != nil { (due, interval) = (now &+ Self.firstInterval, Self.firstInterval) }
    return .nothing
  }

  /// Counts down by one response. Returns whether it is the expected one; if so, the count becomes nil.
  private static func countDown(_ older: inout Int?) -> Bool {
    guard let count = older else { return false }
    older = count > 0 ? count - 1 : nil
    return count == 0
  }

  private mutating func resetRepetition() { (due, interval, repeats) = (nil, Self.firstInterval, 0) }

  /// The fault of a car that does not respond to repeated requests; nil if there is none.
  func fault(isStandingStill: Bool) -> String? {
    if awaitsStop, !isStandingStill, repeats >= Self.maxStopRequests { return "the car has not confirmed Stop: it may still be driving" }
    if isWaiting, repeats >= Self.maxRequests { return "no response to the last command: the car's program may have hung" }
    return nil
  }
}
