// Messages for failed BLE connections, with remedies. Source: BlueZ's doc/device-api.txt and the error texts of its
// src/device.c and src/error.c (5.66); the D-Bus specification.

import DBus

extension DBusError {
  /// The reason for a failed connection, with a remedy, which may contain the placeholder ADDRESS. `isStale` is true if stale data in
  /// BlueZ's cache may be the cause: then the peripheral should be removed from BlueZ.
  var connectFailure: (reason: String, isStale: Bool) {
    guard case .refused(let name, let text) = self else {
      return self == .timeout ? ("no response: check that it is in range and not connected to a phone", false) : (message, false)
    }
    switch (name.split(separator: ".").last ?? "", text) {
    case ("InProgress", _): return ("BlueZ is already connecting to it", false)
    case ("AuthenticationFailed", _), ("AuthenticationRejected", _), ("AuthenticationCanceled", _), ("AuthenticationTimeout", _):
      return ("pairing required: bluetoothctl pair ADDRESS, then bluetoothctl trust ADDRESS", true)
    case ("NotReady", _): return ("the Bluetooth adapter is powered off: bluetoothctl power on", false)
    case ("AccessDenied", _): return ("permission denied by BlueZ: add the daemon's user to group bluetooth", false)
    case ("UnknownObject", _), ("UnknownMethod", _), ("DoesNotExist", _): return ("BlueZ has removed the peer", false)
    case (_, "le-connection-abort-by-local"):
      return ("no response: check that it is in range, powered on and not connected to a phone", true)
    case (_, "le-connection-abort-by-remote"), (_, "le-connection-terminated-by-remote"):
      return ("the peer disconnected at once: check that no phone is connected to it", false)
    case (_, let text) where text.hasPrefix("br-connection"):
      return ("the peer supports only Bluetooth Classic: bind it with rfcomm and use serial:/dev/rfcomm0", true)
    default: return (message, true)
    }
  }
}
