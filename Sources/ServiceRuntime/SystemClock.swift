// The clocks of the kernel: monotonic for timers, boot time for ages and stored samples (it counts suspended time), wall time for display.

import Glibc
import Protocols

/// The clocks of the kernel.
public enum SystemClock {
  /// CLOCK_MONOTONIC in nanoseconds: the time of the event loop.
  public static var monotonic: Instant { read(CLOCK_MONOTONIC) }
  /// CLOCK_BOOTTIME in nanoseconds: like monotonic, but including suspended time.
  public static var boot: Instant { read(CLOCK_BOOTTIME) }
  /// Microseconds since the Unix epoch.
  public static var wall: Int64 { read(CLOCK_REALTIME) / 1000 }

  private static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) &* .second &+ Int64(time.tv_nsec)
  }
}
