// Vehicles that sleep, or should fall asleep: a diagnostic query wakes their ECUs, which drains the 12 V battery.

enum SleepingVehicle {
  /// The states of kind obd in which polling is paused for the vehicle.
  private static let states: Set = ["car-asleep", "parked", "adapter-asleep"]

  static func isAsleep(_ state: String) -> Bool { states.contains(state) }

  /// The note before a query that the user has asked for.
  static func waking(_ device: String, _ state: String) -> String? {
    isAsleep(state) ? "\(device) is not in use (\(state)): the query may wake it" : nil
  }
}
