// A report from the daemon about one property at one time.

import Protocols

/// A value of a property, or its absence with the reason.
struct Observation: Equatable {
  var device: String
  var property: String
  var unit: String?
  /// Microseconds of CLOCK_BOOTTIME.
  var time: Int64
  var content: Reading.Content

  /// The property name under which the state of a device is recorded.
  static let state = "state"
}
