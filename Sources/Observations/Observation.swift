// A report from the daemon about one property at one time.

import Protocols

/// A value of a property, or its absence with the reason.
public struct Observation: Equatable {
  public var device: String
  public var property: String
  public var unit: String?
  /// Microseconds of CLOCK_BOOTTIME.
  public var time: Int64
  public var content: Reading.Content

  /// Creates an observation; `time` in µs of CLOCK_BOOTTIME.
  public init(device: String, property: String, unit: String?, time: Int64, content: Reading.Content) {
    (self.device, self.property, self.unit, self.time, self.content) = (device, property, unit, time, content)
  }

  /// The property name under which the state of a device is recorded.
  public static let state = "state"
}
