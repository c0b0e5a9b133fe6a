// Decides when to send the next setpoint. No I/O: time is an argument. At most one is in flight. Setpoints are not queued: each is computed
// when it is sent.

struct SetPointScheduler {
  /// The maximum rate in setpoints per second.
  static let maxRate = 60.0

  /// Setpoints per second.
  private(set) var rate: Double
  private var due: Double
  /// When the request in flight was sent.
  private(set) var sentAt: Double?

  /// The first setpoint is due at once.
  init(at now: Double, rate: Double = maxRate) {
    self.rate = rate
    due = now
  }

  /// Limits the rate to what the device accepts, if that is known, but not below four setpoints within the lease's deadline (seconds).
  mutating func limit(to deviceRate: Double?, deadline: Double) {
    guard let deviceRate, deviceRate.isFinite, deviceRate > 0 else { return rate = Self.maxRate }
    rate = min(Self.maxRate, max(deviceRate, 4 / deadline))
  }

  /// Returns whether a setpoint is due; if so, counts it as sent. Setpoints stay on a time grid; missed slots are skipped.
  mutating func markSentIfDue(at now: Double) -> Bool {
    guard sentAt == nil, now >= due else { return false }
    sentAt = now
    due += 1 / rate
    if due <= now { due = now + 1 / rate }
    return true
  }

  /// Records that another request was sent. Setpoints wait for its reply.
  mutating func requestSent(at now: Double) { sentAt = now }

  mutating func replyReceived() { sentAt = nil }

  /// When the next one is due; nil while a request is in flight.
  var wake: Double? { sentAt == nil ? due : nil }

  /// Seconds since the request in flight was sent, if more than `deadline`.
  func stall(at now: Double, deadline: Double) -> Double? {
    guard let sentAt, now - sentAt > deadline else { return nil }
    return now - sentAt
  }
}
