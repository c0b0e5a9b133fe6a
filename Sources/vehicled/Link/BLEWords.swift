// What BlueZ refuses, in a person's words, and what to do about it. Facts: BlueZ's doc/device-api.txt and the error texts
// of its src/device.c and src/error.c (5.66); D-Bus error names of the specification.

import Bus

enum BLEWords {
  /// Why a connection was not made and how to mend it; and whether BlueZ's own picture of the peripheral may be the trouble, so
  /// that it had better forget it.
  static func connecting(_ error: BusError) -> (reason: String, isStale: Bool) {
    guard case .refused(let name, let text) = error else {
      return error == .timeout ? ("it does not answer: is it near, and free?", false) : (error.words, false)
    }
    switch (name.split(separator: ".").last ?? "", text) {
    case ("InProgress", _): return ("BlueZ is connecting to it already", false)
    case ("AuthenticationFailed", _), ("AuthenticationRejected", _), ("AuthenticationCanceled", _), ("AuthenticationTimeout", _):
      return ("it wants to be paired: bluetoothctl pair ADDRESS, then trust ADDRESS", true)
    case ("NotReady", _): return ("the Bluetooth adapter is switched off: bluetoothctl power on", false)
    case ("AccessDenied", _): return ("no permission to use Bluetooth: add this user to group bluetooth", false)
    case ("UnknownObject", _), ("UnknownMethod", _), ("DoesNotExist", _): return ("BlueZ has forgotten it", false)
    case (_, "le-connection-abort-by-local"): return ("it did not answer: is it near, switched on, and free of other phones?", true)
    case (_, "le-connection-abort-by-remote"), (_, "le-connection-terminated-by-remote"):
      return ("it hung up at once: is a phone connected to it?", false)
    case (_, let text) where text.hasPrefix("br-connection"):
      return ("it is reached over classic Bluetooth only: bind it with rfcomm and use serial:/dev/rfcomm0", true)
    default: return (error.words, true)
    }
  }
}
