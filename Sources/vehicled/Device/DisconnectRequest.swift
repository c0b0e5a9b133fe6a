// Records whether a user has disconnected a device. The request survives restarts, so it is stored with the state of the
// device's protocol state machine, but the machine does not see it.

import Logging
import Protocols

@Loop final class DisconnectRequest {
  private static let key = "disconnected"

  private let device: String
  private let disk: Disk
  /// The last request; nil before `restore`, and after a request that could not be stored.
  private var isRequested: Bool?

  init(device: String, disk: Disk) { (self.device, self.disk) = (device, disk) }

  /// Whether the links are down because a user disconnected the device.
  var isInForce: Bool { isRequested == true }

  /// Removes the request from the restored state. Returns whether the links stay down; a request made while the state was being read
  /// takes precedence over the stored one.
  func restore(_ restored: inout [String: [UInt8]]) -> Bool {
    let wasStored = restored.removeValue(forKey: Self.key) != nil
    let isDown = isRequested ?? wasStored
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
