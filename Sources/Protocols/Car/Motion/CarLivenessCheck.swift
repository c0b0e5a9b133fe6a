// Detects a hung car program while the car is driven. TCP acknowledges data even if the program hangs, so the machine requests the
// list of modes regularly. It does not request the status, which blocks the car's receiving thread for a second.

struct CarLivenessCheck: Sendable {
  static let hungMessage = "the car no longer responds: its program may have hung; Stop is repeated until it responds"
  /// The interval while tilts are sent; each request interrupts them for 100 ms.
  private static let interval: Nanoseconds = .second
  /// The interval while the car drives autonomously, without tilts.
  private static let autonomousInterval: Nanoseconds = 250 * .millisecond
  /// The timeout of the response. A busy car sometimes takes almost a second to respond.
  private static let timeout: Nanoseconds = 1_500 * .millisecond

  /// When the last request, or Continue, was sent.
  private var requestedAt: Instant = .min
  /// When the first request without a response was sent; nil if no response is awaited.
  private var missingSince: Instant?
  /// Whether the car has reported its modes over this link. A car of the documented dialect may not support the request.
  private var isSupported = false

  /// When the next request is due while tilts are sent; nil if the request is not supported, or a response is awaited.
  var due: Instant? { isSupported && missingSince == nil ? requestedAt &+ Self.interval : nil }
  /// When the next request is due while the car drives autonomously.
  var autonomousDue: Instant { requestedAt &+ Self.autonomousInterval }
  /// When the car counts as hung; nil if no response is awaited.
  var deadline: Instant? { isSupported ? missingSince.map { $0 &+ Self.timeout } : nil }

  /// Restarts the check after Continue was sent.
  mutating func restart(at now: Instant) { (requestedAt, missingSince) = (now, nil) }
  mutating func requestSent(at now: Instant) { (requestedAt, missingSince) = (now, missingSince ?? now) }
  mutating func responseReceived() { (missingSince, isSupported) = (nil, true) }
}
