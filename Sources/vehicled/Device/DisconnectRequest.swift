// Whether a user has disconnected a device. This survives restarts, so it is stored beside the machine's state, but the
// machine does not see it.

import Logging
import Protocols

@Loop final class DisconnectRequest {
  private static let key = "disconnected"

  private let device: String
  private let disk: Disk
  /// The last request; nil: as stored.
  private var isRequested: Bool?

  init(device: String, disk: Disk) { (self.device, self.disk) = (device, disk) }

  /// Whether the links are down because a user disconnected the device.
  var isInForce: Bool { isRequested == true }

  /// Removes its own key from the restored state. Returns whether the links stay down; a request made since then takes precedence.
  func restore(_ restored: inout [String: [UInt8]]) -> Bool {
    let was = restored.removeValue(forKey: Self.key) != nil
    let isDown = isRequested ?? was
    isRequested = isDown
    return isDown
  }

  /// Stores a request. `finish` gets the error, or nil.
  func set(_ isDown: Bool, then finish: @escaping @Loop (String?) -> Void) {
    guard isRequested != isDown else { return finish(nil) }
    isRequested = isDown
    disk.store(device: device, key: Self.key, isDown ? [UInt8(ascii: "1")] : []) { failure in
      if failure != nil { self.isRequested = nil }
      finish(failure)
    }
  }
}
