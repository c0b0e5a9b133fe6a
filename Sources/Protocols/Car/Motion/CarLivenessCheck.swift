// Detects a hung car program while the car is driven. TCP acknowledges data even if the program hangs, so the machine requests the
// list of modes; not the status, which occupies the receiving thread for a second. Among tilts the request is sent alone, as every
// command.

struct CarLivenessCheck: Sendable {
  static let hung = "the car no longer responds: its program may hang; Stop is repeated until it responds"
  /// The interval among tilts; each request costs 100 ms of tilts.
  private static let interval: Nanoseconds = .second
  /// The interval where the car drives autonomously and no tilts are sent.
  private static let autonomousInterval: Nanoseconds = 250 * .millisecond
  /// The timeout of the response: a busy car sleeps for most of a second now and then.
  private static let timeout: Nanoseconds = 1_500 * .millisecond

  /// When the last request, or Continue, was sent.
  private var requestedAt: Instant = .min
  /// Since when a response is missing.
  private var missingSince: Instant?
  /// The car has reported its modes over this link: a documented car need not support the request.
  private var isSupported = false

  /// When the next request among tilts is due.
  var due: Instant? { isSupported && missingSince == nil ? requestedAt &+ Self.interval : nil }
  /// The same where the car drives autonomously.
  var autonomousDue: Instant { requestedAt &+ Self.autonomousInterval }
  /// When the car counts as hung; nil: no response is missing.
  var deadline: Instant? { isSupported ? missingSince.map { $0 &+ Self.timeout } : nil }

  /// Continue was sent.
  mutating func begin(at now: Instant) { (requestedAt, missingSince) = (now, nil) }
  mutating func requested(at now: Instant) { (requestedAt, missingSince) = (now, missingSince ?? now) }
  mutating func answered() { (missingSince, isSupported) = (nil, true) }
}
