// When the next set-point is due. Pure: time is an argument. At most one is in flight; when it is due, the newest one is sent.

struct SetPointScheduler {
  /// Set-points per second at most.
  static let maxRate = 60.0

  /// Set-points per second.
  private(set) var rate: Double
  private var due: Double
  /// When the request in flight was sent.
  private(set) var sentAt: Double?

  /// The first is due at once.
  init(at now: Double, rate: Double = maxRate) {
    self.rate = rate
    due = now
  }

  /// Limits the rate to what the device accepts, if known, but keeps four set-points within the deadline (seconds) of the lease.
  mutating func limit(to wanted: Double?, deadline: Double) {
    guard let wanted, wanted.isFinite, wanted > 0 else { return rate = Self.maxRate }
    rate = min(Self.maxRate, max(wanted, 4 / deadline))
  }

  /// Returns whether a set-point is to be sent now, and counts it as sent. Stays on the time grid; missed slots are skipped.
  mutating func send(at now: Double) -> Bool {
    guard sentAt == nil, now >= due else { return false }
    sentAt = now
    due += 1 / rate
    if due <= now { due = now + 1 / rate }
    return true
  }

  /// Another request was sent, which set-points wait for.
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
