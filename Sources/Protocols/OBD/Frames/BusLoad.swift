// Limits the share of the bus that the daemon's own requests and their responses occupy. Short bursts are permitted.

struct BusLoad: Sendable {
  /// How much use of the bus may be brought forward.
  private static let burst: Nanoseconds = 100 * .millisecond
  private static let assumedBitRate = 500_000

  /// The time that one bit accounts for; 0 if there is no limit.
  private let timePerBit: Double
  /// The time at which all use so far has been accounted for.
  private var accountedUntil: Instant = .min

  /// `maxLoad` is the share, 0 to 1; 0: no limit. If the bit rate in bit/s is not known, that of most cars is assumed.
  init(maxLoad: Double, bitRate: Int?) {
    timePerBit = maxLoad > 0 ? 1e9 / (Double(bitRate ?? Self.assumedBitRate) * maxLoad) : 0
  }

  mutating func record(bits: Int, at now: Instant) {
    guard timePerBit > 0 else { return }
    accountedUntil = max(accountedUntil, now) &+ Nanoseconds(Double(bits) * timePerBit)
  }

  /// Until when nothing may be sent, or nil if something may be sent now.
  func pause(at now: Instant) -> Instant? {
    guard accountedUntil != .min else { return nil }
    let end = accountedUntil &- Self.burst
    return end > now ? end : nil
  }
}
