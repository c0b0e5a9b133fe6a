// Whether the car's program still runs while somebody drives. TCP acknowledges for a program that hangs, so the car is asked
// for its modes, never for its status, which keeps its receiving thread busy for a second. Among tilts the question travels
// alone, as every word does.

struct CarPulse: Sendable {
  /// Among tilts, which lose 100 ms to each question.
  private static let interval: Nanoseconds = .second
  /// Where the car drives by itself no tilt tells whether it can be reached.
  static let aloneInterval: Nanoseconds = 250 * .millisecond
  /// How long the answer may take: a car that is busy sleeps for most of a second now and then.
  private static let timeout: Nanoseconds = 1_500 * .millisecond

  /// When it was asked last, or let drive.
  private(set) var asked: Instant = .min
  /// Since when an answer is missing.
  private var missing: Instant?
  /// The car has told its modes over this link: a documented one need not know the question.
  private var isKnown = false

  var due: Instant? { isKnown && missing == nil ? asked &+ Self.interval : nil }
  /// When the car counts as hung.
  var deadline: Instant? { isKnown ? missing.map { $0 &+ Self.timeout } : nil }

  mutating func begin(at now: Instant) { (asked, missing) = (now, nil) }
  mutating func ask(at now: Instant) { (asked, missing) = (now, missing ?? now) }
  mutating func answered() { (missing, isKnown) = (nil, true) }
}

extension CarMachine {
  private static let hung = "the car does not answer any more: its program may hang; Stop is repeated until it answers"

  /// When the next question is due among tilts; nil: none is, or one waits already.
  var pulseDue: Instant? {
    guard isStreaming, !outbox.errands.contains(where: { $0.purpose == .pulse }) else { return nil }
    return pulse.due
  }

  /// When the car counts as hung; nil: no answer is missing.
  var hungAt: Instant? { driving.isRunning ? pulse.deadline : nil }

  mutating func checkPulse(at now: Instant, _ effects: inout Effects) {
    if let due = pulseDue, now >= due { _ = outbox.add(CarErrand(.pulse, [.modes])) }
    if let hungAt, now >= hungAt {
      settling.unsettle()
      loseLease(Self.hung, at: now, &effects)
    }
    // The driver holds on, and Continue waits for a car that does not answer.
    if driving.permit == .granting, let trouble { loseLease(trouble, at: now, &effects) }
  }
}
