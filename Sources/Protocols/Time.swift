// Time as the machines see it: a number they are handed.

/// A length of time in nanoseconds.
public typealias Nanoseconds = Int64

/// A point on the monotonic clock, in nanoseconds from an origin that only the caller knows.
public typealias Instant = Int64

extension Int64 {
  /// A thousand nanoseconds.
  public static var microsecond: Nanoseconds { 1_000 }
  /// A million nanoseconds.
  public static var millisecond: Nanoseconds { 1_000_000 }
  /// A billion nanoseconds.
  public static var second: Nanoseconds { 1_000_000_000 }
}

/// Wall time as an argument: microseconds since the Unix epoch, the local offset from UTC in seconds, and when the local day
/// began, in seconds since the Unix epoch, where that is known: the offset may have been another one then.
public struct WallTime: Sendable, Equatable {
  public var microseconds: Int64
  public var utcOffset: Int
  public var midnight: Int64?

  /// Wall time at an offset from UTC.
  public init(microseconds: Int64, utcOffset: Int = 0, midnight: Int64? = nil) {
    self.microseconds = microseconds
    self.utcOffset = utcOffset
    self.midnight = midnight
  }
}
