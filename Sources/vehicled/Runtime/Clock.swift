// The three clocks: monotonic for timers and protocol state machines, boot time for ages (it counts suspended time), wall time for display.

import Glibc
import Protocols

enum Clock {
  /// CLOCK_MONOTONIC in nanoseconds. Machines and NIO use this clock.
  static func monotonic() -> Instant { read(CLOCK_MONOTONIC) }
  /// CLOCK_BOOTTIME in nanoseconds: like monotonic, but including suspended time.
  static func boot() -> Int64 { read(CLOCK_BOOTTIME) }
  /// Microseconds since the Unix epoch.
  static func wall() -> Int64 { read(CLOCK_REALTIME) / 1000 }

  /// The wall time of an event on the monotonic clock, in microseconds since the Unix epoch.
  static func wall(of time: Instant) -> Int64 { wall() - (monotonic() - time) / .microsecond }

  /// The monotonic time of a recent event from its CLOCK_REALTIME in ns; `now` if that is unknown (negative) or not within the last second,
  /// because the wall clock was set.
  static func monotonic(ofWall time: Int64, at now: Instant) -> Instant {
    let age = read(CLOCK_REALTIME) - time
    return time > 0 && (0...Nanoseconds.second).contains(age) ? now - age : now
  }

  /// Wall time with the local offset from UTC.
  static func wallTime() -> WallTime {
    let now = wall()
    var seconds = time_t(now / 1_000_000)
    var parts = tm()
    localtime_r(&seconds, &parts)
    let offset = parts.tm_gmtoff
    (parts.tm_hour, parts.tm_min, parts.tm_sec, parts.tm_isdst) = (0, 0, 0, -1)
    let midnight = mktime(&parts)
    return WallTime(microseconds: now, utcOffset: offset, midnight: midnight < 0 ? nil : Int64(midnight))
  }

  /// The wall time in UTC: `2026-01-31T12:00:00.123Z`.
  static func isoTime() -> String {
    let now = wall()
    var seconds = time_t(now / 1_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let text = String(unsafeUninitializedCapacity: 32) { text in
      text.withMemoryRebound(to: CChar.self) { text in
        text.baseAddress.map { strftime($0, text.count, "%Y-%m-%dT%H:%M:%S", &parts) } ?? 0
      }
    }
    return "\(text).\(String(now / 1000 % 1000 + 1000).dropFirst())Z"
  }

  private static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) &* .second &+ Int64(time.tv_nsec)
  }
}
