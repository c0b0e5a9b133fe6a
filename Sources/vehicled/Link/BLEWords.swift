// What BlueZ refuses, in a person's words, and what to do about it. Facts: BlueZ's doc/device-api.txt and the error texts
// of its src/device.c and src/error.c (5.66); D-Bus error names of the specification.

import Bus

enum BLEWords {
  /// What helps against a failed connect beside trying again.
  enum Remedy {
    case none
    /// BlueZ's own picture of the peripheral may be the trouble: let it forget it.
    case forget
    /// Somebody else is at it: look again soon.
    case wait
    /// The object is gone: search.
    case search
  }

  /// Any failure, without advice.
  static func plain(_ error: BusError) -> String {
    switch error {
    case .disconnected(let reason): printable(reason)
    case .timeout: "no answer"
    case .refused(let name, let text):
      text.isEmpty ? printable(name.split(separator: ".").last ?? "refused") : printable(text.prefix(1).lowercased() + text.dropFirst())
    case .unsendable(let what): "cannot ask for \(printable(what))"
    case .malformed(let what): "an answer that makes no sense: \(printable(what))"
    }
  }

  /// Why a connection was not made, how to mend it, and what helps.
  static func connecting(_ error: BusError) -> (reason: String, remedy: Remedy) {
    guard case .refused(let name, let text) = error else {
      return error == .timeout ? ("it does not answer: is it near, and free?", .none) : (plain(error), .none)
    }
    switch (name.split(separator: ".").last ?? "", text) {
    case ("InProgress", _): return ("BlueZ is connecting to it already", .wait)
    case ("AuthenticationFailed", _), ("AuthenticationRejected", _), ("AuthenticationCanceled", _), ("AuthenticationTimeout", _):
      return ("it wants to be paired: bluetoothctl pair ADDRESS, then trust ADDRESS", .forget)
    case ("NotReady", _): return ("the Bluetooth adapter is switched off: bluetoothctl power on", .none)
    case ("AccessDenied", _): return ("no permission to use Bluetooth: add this user to group bluetooth", .none)
    case ("UnknownObject", _), ("UnknownMethod", _), ("DoesNotExist", _): return ("BlueZ has forgotten it", .search)
    case (_, "le-connection-abort-by-local"): return ("it did not answer: is it near, switched on, and free of other phones?", .forget)
    case (_, "le-connection-abort-by-remote"), (_, "le-connection-terminated-by-remote"):
      return ("it hung up at once: is a phone connected to it?", .none)
    case (_, let text) where text.hasPrefix("br-connection"):
      return ("it is reached over classic Bluetooth only: bind it with rfcomm and use serial:/dev/rfcomm0", .forget)
    default: return (plain(error), .forget)
    }
  }
}
