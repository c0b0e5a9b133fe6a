// The local day and its start, computed from the wall-clock times that the machine requests occasionally. The wall clock can be set forward
// or back, and the UTC offset changes with daylight saving and travel, so the most recent time is used.

/// The local day and its start.
struct DayClock: Sendable, Equatable {
  /// Local days since 1970-01-01.
  private(set) var day: Int
  /// The start of the day, in seconds since the Unix epoch.
  private(set) var midnight: Int64
  /// The UTC offset in seconds.
  private(set) var utcOffset: Int64
  /// The wall-clock time in microseconds since the Unix epoch at `instant`.
  private var wall: Int64
  private var updated: Instant

  /// A day in seconds.
  private static let dayLength: Int64 = 86_400
  private static let maxMicroseconds: Int64 = 1 << 55

  /// Creates a clock from the current time.
  init(_ time: WallTime, at now: Instant) {
    wall = min(max(time.microseconds, -Self.maxMicroseconds), Self.maxMicroseconds)
    updated = now
    utcOffset = Int64(min(max(time.utcOffset, -2 * Int(Self.dayLength)), 2 * Int(Self.dayLength)))
    let local = Self.floor(wall, 1_000_000) + utcOffset
    day = Int(Self.floor(local, Self.dayLength))
    midnight = Int64(day) * Self.dayLength - utcOffset
    // The UTC offset may have changed since midnight.
    if let known = time.midnight, abs(midnight - known) <= 7200 { midnight = known }
  }

  /// Updates the time. Returns true if the wall clock has been set since the last update.
  mutating func set(_ time: WallTime, at now: Instant) -> Bool {
    let expected = micros(at: now)
    self = DayClock(time, at: now)
    return abs(wall - expected) > 60_000_000
  }

  /// The wall-clock time in microseconds since the Unix epoch, unless the clock was set in the meantime.
  func micros(at now: Instant) -> Int64 { wall + max(0, now &- updated) / .microsecond }

  /// When the next day starts, unless the clock is set.
  var nextDay: Instant {
    let left = (Int64(day) + 1) * Self.dayLength - utcOffset - Self.floor(wall, 1_000_000)
    return updated &+ min(max(left, 1), 2 * Self.dayLength) * .second
  }

  /// The local time of day of a time in microseconds since the Unix epoch: `14:05`.
  func timeOfDay(of micros: Int64) -> String {
    let minutes = Self.floor(Self.floor(min(max(micros, -Self.maxMicroseconds), Self.maxMicroseconds), 1_000_000) + utcOffset, 60)
    let minuteOfDay = Int(minutes - Self.floor(minutes, 1440) * 1440)
    func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(digits(minuteOfDay / 60)):\(digits(minuteOfDay % 60))"
  }

  /// The age of a time in microseconds since the Unix epoch; 0 for times in the future.
  func age(of micros: Int64, at now: Instant) -> Nanoseconds {
    let age = self.micros(at: now).subtractingReportingOverflow(micros)
    return (age.overflow ? 0 : min(max(age.partialValue, 0), 1 << 50)) * .microsecond
  }

  /// A duration in microseconds as text: `45 s`, `12 min`, `3 h`, `5 d`.
  static func ageText(_ micros: Int64) -> String {
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
