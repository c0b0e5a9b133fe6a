// The time axis of recorded samples: CLOCK_BOOTTIME in µs within one boot, and its offset from the wall clock.

import CLinux
import Glibc
import Protocols
import ServiceRuntime

/// The clocks at one moment.
public struct ClockReading: Equatable {
  /// CLOCK_BOOTTIME, and the wall clock, in µs.
  public var boot: Int64
  public var wall: Int64
  /// Whether the kernel reports the wall clock as synchronised.
  public var isSynchronised: Bool

  /// Creates a reading from CLOCK_BOOTTIME and the wall clock, in µs.
  public init(boot: Int64, wall: Int64, isSynchronised: Bool) {
    (self.boot, self.wall, self.isSynchronised) = (boot, wall, isSynchronised)
  }

  public static var now: ClockReading {
    ClockReading(boot: SystemClock.boot / 1000, wall: SystemClock.wall, isSynchronised: clinux_clock_is_synchronised() == 1)
  }

  public var offset: Int64 { wall - boot }
}

/// The stored offset of this boot. It follows the wall clock until the clock is synchronised for the first time, and is then final.
public struct ClockOffset {
  /// The change of the offset, in µs, up to which a new offset is not stored while the clock is not synchronised.
  private static let tolerance: Int64 = 1000
  public private(set) var stored: Int64
  public private(set) var isFinal = false

  public init(_ reading: ClockReading) { stored = reading.offset }

  /// Returns the offset to store, or nil if the stored one is correct. `isFinal` is whether the clock is synchronised.
  public mutating func update(_ reading: ClockReading) -> (offset: Int64, isFinal: Bool)? {
    guard !isFinal, reading.isSynchronised || abs(reading.offset - stored) > Self.tolerance else { return nil }
    (stored, isFinal) = (reading.offset, reading.isSynchronised)
    return (stored, isFinal)
  }

  /// Adopts the offset that an earlier process stored in the same boot.
  public mutating func restore(_ offset: Int64, isFinal: Bool) { (stored, self.isFinal) = (offset, isFinal) }
}

/// The identity of the current boot.
public enum BootID {
  /// The kernel's identifier of this boot.
  public static func current() throws(ValueError) -> String {
    let path = "/proc/sys/kernel/random/boot_id"
    let text = String(decoding: try Files.read(path, limit: 100), as: UTF8.self)
    return String(text.prefix { $0 != "\n" })
  }
}
