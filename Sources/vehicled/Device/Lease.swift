// The motion lease of a device.

import Protocols

extension Device {
  /// The exclusive right to move the device. The protocol state machine checks that setpoints keep arriving; the creator of the
  /// lease watches the client.
  struct Lease {
    /// The token that setpoints carry.
    let token: String
    let user: UInt32
    /// The holder, as shown to other clients.
    let holder: String
    /// The maximum time between setpoints, in ns.
    let deadline: Nanoseconds
    /// Called once with the reason if the lease ends other than by `releaseLease`.
    let lost: @Loop (String) -> Void
  }
}
