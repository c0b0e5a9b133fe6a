// The local day and its start, computed from the wall-clock times that the machine requests occasionally. The wall clock can be set in
// both directions, and the UTC offset changes with daylight saving and travel; the most recent time is used.

/// The local day and its start.
struct DayClock: Sendable, Equatable {
  /// Local days since 1970-01-01.
  private(set) var day: Int
  /// The start of the day, in seconds since the Unix epoch.
  private(set) var midnight: Int64
  /// The UTC offset in seconds.
  private(set) var offset: Int64
  /// The wall-clock time in microseconds since the Unix epoch at `instant`.
  private var wall: Int64
  private var updated: Instant

  private static let dayLength: Int64 = 86_400
  private static let latest: Int64 = 1 << 55

  /// Creates a clock from the current time.
  init(_ time: WallTime, at now: Instant) {
    wall = min(max(time.microseconds, -Self.latest), Self.latest)
    updated = now
    offset = Int64(min(max(time.utcOffset, -2 * 86_400), 2 * 86_400))
    let local = Self.floor(wall, 1_000_000) + offset
    day = Int(Self.floor(local, Self.dayLength))
    midnight = Int64(day) * Self.dayLength - offset
    // The UTC offset may have changed since midnight.
    if let known = time.midnight, abs(midnight - known) <= 7200 { midnight = known }
  }

  /// Updates the time. Returns true if the wall clock was set since the last update.
  mutating func set(_ time: WallTime, at now: Instant) -> Bool {
    let expected = micros(at: now)
    self = DayClock(time, at: now)
    return abs(wall - expected) > 60_000_000
  }

  /// The wall-clock time in microseconds since the Unix epoch, unless the clock was set in the meantime.
  func micros(at now: Instant) -> Int64 { wall + max(0, now &- updated) / .microsecond }

  /// When the next day starts, unless the clock is set.
  var nextDay: Instant {
    let left = (Int64(day) + 1) * Self.dayLength - offset - Self.floor(wall, 1_000_000)
    return updated &+ min(max(left, 1), 2 * Self.dayLength) * .second
  }

  /// A time of day in local time: `14:05`.
  func text(of micros: Int64) -> String {
    let minutes = Self.floor(Self.floor(min(max(micros, -Self.latest), Self.latest), 1_000_000) + offset, 60)
    let inDay = Int(minutes - Self.floor(minutes, 1440) * 1440)
    func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(digits(inDay / 60)):\(digits(inDay % 60))"
  }

  /// The age of a time in microseconds since the Unix epoch; 0 for times in the future.
  func age(of micros: Int64, at now: Instant) -> Nanoseconds {
    let age = self.micros(at: now).subtractingReportingOverflow(micros)
    return (age.overflow ? 0 : min(max(age.partialValue, 0), 1 << 50)) * .microsecond
  }

  /// A duration as text: `45 s`, `12 min`, `3 h`, `5 d`.
  static func age(_ micros: Int64) -> String {
    switch max(0, micros / 1_000_000) {
    case let seconds where seconds < 60: "\(seconds) s"
    case let seconds where seconds < 3600: "\(seconds / 60) min"
    case let seconds where seconds < 172_800: "\(seconds / 3600) h"
    case let seconds: "\(seconds / 86_400) d"
    }
  }

  private static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
    number / divisor - (number % divisor < 0 ? 1 : 0)
  }
}
