// Detects vehicles that are asleep or are being allowed to fall asleep: a diagnostic query wakes their ECUs, which drains the 12 V battery.

enum SleepingVehicle {
  /// The states of kind obd in which polling is paused because the vehicle is not in use.
  private static let states: Set = ["car-asleep", "parked", "adapter-asleep"]

  static func isAsleep(_ state: String) -> Bool { states.contains(state) }

  /// The note to print before a query that the user requested; nil if the vehicle is in use.
  static func waking(_ device: String, _ state: String) -> String? {
    isAsleep(state) ? "\(device) is not in use (\(state)): the query may wake it" : nil
  }
}
