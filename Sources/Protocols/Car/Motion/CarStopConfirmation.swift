// Confirmation of commands. As built the car discards what it read together with a command that fails in its program, such as
// Continue in modes in which it drives autonomously, and it ignores commands for two seconds while a mode starts its camera. So after
// such a command, and after every Stop, its modes are requested: it executes and responds on one thread, in order, so the response
// confirms earlier commands. Where it may have discarded them, only commands after the response are reliable: Stop is sent once more
// then, and confirmed by the next response. Requests are repeated, together with Stop. Responses do not identify their request;
// those to older requests are ignored.
// Source: autott.md §8; Steering.py, Modes.py.

struct CarStopConfirmation: Sendable, Equatable {
  private static let first: Nanoseconds = 300 * .millisecond
  private static let longest: Nanoseconds = 5 * .second
  /// When a missing confirmation is reported: 2.1 s after Stop, because Status alone takes the car a second, and 4.5 s after other
  /// commands, because its camera takes two.
  private static let (suspicious, hopeless) = (4, 5)
  /// The maximum number of responses in flight; further requests were lost.
  private static let maxOpen = 4

  /// The meaning of a response.
  enum Meaning { case nothing, stopAgain, stopConfirmed }

  /// The number of older responses before the one that shows that the car accepts commands; nil: it does.
  private var acceptance: Int?
  /// The same for the one that confirms Stop; nil: none is expected.
  private var stop: Int?
  /// When the next request is sent.
  private(set) var due: Instant?
  /// The number of expected responses.
  private var open: Int
  private var interval = Self.first
  private var repeats = 0

  /// A new session, in which the car sends its modes several times without a request.
  init(unasked: Int = 0) { open = unasked }

  /// All commands are confirmed.
  var isReliable: Bool { acceptance == nil }
  /// A Stop is not confirmed.
  var owesStop: Bool { stop != nil }
  private var isWaiting: Bool { !isReliable || owesStop }

  /// The car may discard the next commands.
  mutating func expectLoss() {
    acceptance = open
    rest()
  }

  /// A Stop is sent.
  mutating func stopped() {
    if isWaiting { due = nil } else { rest() }
    stop = open
  }

  /// Continue is sent: earlier Stops no longer matter.
  mutating func continued() {
    stop = nil
    if isReliable { rest() }
  }

  /// The link has accepted the request.
  mutating func requested(at now: Instant) {
    open = min(open + 1, Self.maxOpen)
    acceptance = acceptance.map { min($0, open - 1) }
    stop = stop.map { min($0, open - 1) }
    guard isWaiting, due == nil else { return }
    due = now &+ interval
    interval = min(interval &* 2, Self.longest)
    repeats &+= 1
  }

  /// The next request is sent now.
  mutating func requestQueued() { due = nil }

  /// The car has sent its modes.
  mutating func answered(at now: Instant) -> Meaning {
    guard open > 0 else { return .nothing }
    open -= 1
    let (accepts, confirms) = (Self.reach(&acceptance), Self.reach(&stop))
    if accepts {
      rest()
      // Sent before the response, so it may have been discarded.
      if owesStop || confirms { stop = open }
      return owesStop ? .stopAgain : .nothing
    }
    if confirms {
      if isReliable { rest() }
      return .stopConfirmed
    }
    // The car responds, so the next request is not delayed.
    if due != nil { (due, interval) = (now &+ Self.first, Self.first) }
    return .nothing
  }

  /// Whether this is the expected response; it is expected no longer then.
  private static func reach(_ older: inout Int?) -> Bool {
    guard let count = older else { return false }
    older = count > 0 ? count - 1 : nil
    return count == 0
  }

  private mutating func rest() { (due, interval, repeats) = (nil, Self.first, 0) }

  /// The fault of a car that has not confirmed.
  func fault(isStandingStill: Bool) -> String? {
    if owesStop, !isStandingStill, repeats >= Self.suspicious { return "the car has not confirmed Stop: it may still be driving" }
    if isWaiting, repeats >= Self.hopeless { return "no response to the last command: the car's program may hang" }
    return nil
  }
}
