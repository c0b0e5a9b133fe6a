// Detects a hung car program while the car is driven. TCP acknowledges data even if the program hangs, so the machine requests the
// list of modes; not the status, which occupies the receiving thread for a second. Among tilts the request is sent alone, as every
// command.

struct CarLivenessCheck: Sendable {
  /// The interval among tilts; each request costs 100 ms of tilts.
  private static let interval: Nanoseconds = .second
  /// The interval where the car drives autonomously and no tilts are sent.
  static let aloneInterval: Nanoseconds = 250 * .millisecond
  /// The timeout of the response: a busy car sleeps for most of a second now and then.
  private static let timeout: Nanoseconds = 1_500 * .millisecond

  /// When the last request, or Continue, was sent.
  private(set) var asked: Instant = .min
  /// Since when a response is missing.
  private var missing: Instant?
  /// The car has reported its modes over this link: a documented car need not support the request.
  private var isKnown = false

  var due: Instant? { isKnown && missing == nil ? asked &+ Self.interval : nil }
  /// When the car counts as hung.
  var deadline: Instant? { isKnown ? missing.map { $0 &+ Self.timeout } : nil }

  mutating func begin(at now: Instant) { (asked, missing) = (now, nil) }
  mutating func ask(at now: Instant) { (asked, missing) = (now, missing ?? now) }
  mutating func answered() { (missing, isKnown) = (nil, true) }
}

extension CarMachine {
  private static let hung = "the car no longer responds: its program may hang; Stop is repeated until it responds"

  /// When the next request is due among tilts; nil: none, or one is queued.
  var livenessDue: Instant? {
    guard isStreaming, !queue.commands.contains(where: { $0.purpose == .liveness }) else { return nil }
    return liveness.due
  }

  /// When the car counts as hung; nil: no response is missing.
  var hungAt: Instant? { driving.isRunning ? liveness.deadline : nil }

  mutating func checkLiveness(at now: Instant, _ effects: inout Effects) {
    if let due = livenessDue, now >= due { _ = queue.add(CarQueuedCommand(.liveness, [.modes])) }
    if let hungAt, now >= hungAt {
      confirmation.expectLoss()
      loseLease(Self.hung, at: now, &effects)
    }
    // The lease stays, and Continue waits until the car responds.
    if driving.permit == .granting, let trouble { loseLease(trouble, at: now, &effects) }
  }
}
