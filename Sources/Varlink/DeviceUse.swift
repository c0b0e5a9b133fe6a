// Whether a vehicle is not in use, so that its values are absent although nothing is wrong. The checks of the daemon and the views of clients
// agree on it.

extension Contract.Device {
  /// The states of kind obd in which polling is paused because the vehicle is not in use.
  private static let statesAtRest: Set = ["car-asleep", "parked", "adapter-asleep"]
  /// How the daemon's message about a low battery begins.
  private static let lowBattery = "the 12 V battery is low"

  /// Whether a vehicle in this state is asleep, or is being allowed to fall asleep: a query may wake its ECUs.
  public static func isAtRest(state: String) -> Bool { statesAtRest.contains(state) }

  /// Whether polling is paused because the vehicle is not in use. The fault then only says so, unless the battery is low.
  public static func isNotInUse(state: String, fault: String?) -> Bool {
    isAtRest(state: state) && fault?.hasPrefix(lowBattery) != true
  }
}
