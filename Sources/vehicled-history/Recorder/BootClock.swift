// The time axis of recorded samples: CLOCK_BOOTTIME in µs of one boot, and its offset to the wall clock.

import CLinux
import Glibc
import Protocols
import ServiceRuntime

/// The clocks at one moment.
struct ClockReading: Equatable {
  /// CLOCK_BOOTTIME, and the wall clock, in µs.
  var boot: Int64
  var wall: Int64
  /// Whether the kernel reports the wall clock as synchronised.
  var isSynchronised: Bool

  static var now: ClockReading {
    ClockReading(boot: SystemClock.boot / 1000, wall: SystemClock.wall, isSynchronised: clinux_clock_is_synchronised() == 1)
  }

  var offset: Int64 { wall - boot }
}

/// The offset of this boot, as it is stored: the latest one, until the clock is synchronised for the first time.
struct ClockOffset {
  /// A smaller difference is not worth a write.
  private static let tolerance: Int64 = 1000
  private(set) var stored: Int64
  private(set) var isFinal = false

  init(_ reading: ClockReading) { stored = reading.offset }

  /// The offset to store, or nil if the stored one is right. `isFinal`: it was set from a synchronised clock.
  mutating func update(_ reading: ClockReading) -> (offset: Int64, isFinal: Bool)? {
    guard !isFinal, reading.isSynchronised || abs(reading.offset - stored) > Self.tolerance else { return nil }
    (stored, isFinal) = (reading.offset, reading.isSynchronised)
    return (stored, isFinal)
  }

  /// Adopts what an earlier process of the same boot has stored.
  mutating func restore(_ offset: Int64, isFinal: Bool) { (stored, self.isFinal) = (offset, isFinal) }
}

/// The boot that runs.
enum BootID {
  /// The kernel's identifier of this boot.
  static func current() throws(ValueError) -> String {
    let path = "/proc/sys/kernel/random/boot_id"
    let text = String(decoding: try Files.read(path, limit: 100), as: UTF8.self)
    return String(text.prefix { $0 != "\n" })
  }
}
