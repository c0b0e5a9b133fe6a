// Whether a person wants the links of a device down. That outlives the daemon, so it stands beside what the device's machine stores,
// and the machine does not see it.

import Logging
import Protocols

@Loop final class Disconnection {
  private static let key = "disconnected"

  private let device: String
  private let disk: Disk
  /// What was asked for last; nil: what the disk says.
  private var isWanted: Bool?

  init(device: String, disk: Disk) { (self.device, self.disk) = (device, disk) }

  /// The links are down because a person wants that.
  var isInForce: Bool { isWanted == true }

  /// Takes its own from what was restored. Gives whether the links are to stay down: what was asked for meanwhile counts more.
  func restore(_ restored: inout [String: [UInt8]]) -> Bool {
    let was = restored.removeValue(forKey: Self.key) != nil
    let isDown = isWanted ?? was
    isWanted = isDown
    return isDown
  }

  /// Stores what is asked for. `finish` is told the failure, or nil.
  func set(_ isDown: Bool, then finish: @escaping @Loop (String?) -> Void) {
    guard isWanted != isDown else { return finish(nil) }
    isWanted = isDown
    disk.store(device: device, key: Self.key, isDown ? [UInt8(ascii: "1")] : []) { failure in
      if failure != nil { self.isWanted = nil }
      finish(failure)
    }
  }
}
