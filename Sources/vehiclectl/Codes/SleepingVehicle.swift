// Detects vehicles that are asleep or are being allowed to fall asleep: a diagnostic query wakes their ECUs, which drains the 12 V battery.

import Varlink

enum SleepingVehicle {
  static func isAsleep(_ state: String) -> Bool { Contract.Device.isAtRest(state: state) }

  /// The note to print before a query that the user requested; nil if the vehicle is in use.
  static func waking(_ device: String, _ state: String) -> String? {
    isAsleep(state) ? "\(device) is not in use (\(state)): the query may wake it" : nil
  }
}
