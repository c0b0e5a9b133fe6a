// Time in the protocol state machines. Times are passed in as numbers; a machine never reads a clock.

/// A duration in nanoseconds.
public typealias Nanoseconds = Int64

/// A point on the monotonic clock, in nanoseconds from an arbitrary origin.
public typealias Instant = Int64

extension Int64 {
  /// A thousand nanoseconds.
  public static var microsecond: Nanoseconds { 1_000 }
  /// A million nanoseconds.
  public static var millisecond: Nanoseconds { 1_000_000 }
  /// A billion nanoseconds.
  public static var second: Nanoseconds { 1_000_000_000 }
}

/// Wall-clock time: microseconds since the Unix epoch, the local offset from UTC in seconds, and the start of the local day in
/// seconds since the Unix epoch, if known (the offset may have changed since midnight).
public struct WallTime: Sendable, Equatable {
  public var microseconds: Int64
  public var utcOffset: Int
  public var midnight: Int64?

  /// Creates a wall-clock time.
  public init(microseconds: Int64, utcOffset: Int = 0, midnight: Int64? = nil) {
    self.microseconds = microseconds
    self.utcOffset = utcOffset
    self.midnight = midnight
  }
}

extension WallTime {
  /// The ISO 8601 text of a time in microseconds since the Unix epoch: `2026-01-31T12:00:00Z`. The date is computed from the days as in
  /// Howard Hinnant's paper on chrono-compatible algorithms.
  package static func isoTime(_ microseconds: Int64) -> String {
    let seconds = Int((Double(microseconds) / 1_000_000).rounded(.down))
    let secondOfDay = seconds - floor(seconds, by: 86_400) * 86_400
    let days = floor(seconds, by: 86_400) + 719_468
    let era = floor(days, by: 146_097)
    let dayOfEra = days - era * 146_097
    let year = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * year + year / 4 - year / 100)
    // The algorithm's years start in March.
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let date = "\(year + era * 400 + (month <= 2 ? 1 : 0))-\(pair(month))-\(pair(day))"
    return "\(date)T\(pair(secondOfDay / 3600)):\(pair(secondOfDay / 60 % 60)):\(pair(secondOfDay % 60))Z"
  }

  private static func floor(_ number: Int, by divisor: Int) -> Int {
    number >= 0 ? number / divisor : -((-number + divisor - 1) / divisor)
  }
  private static func pair(_ number: Int) -> String { String(String(number + 100).dropFirst()) }
}
