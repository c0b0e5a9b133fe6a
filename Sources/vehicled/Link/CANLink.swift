// A CAN interface of the kernel through a raw socket. Each read and each write is one frame. The interface itself, with its bit rate, is set
// up by the administrator: that requires a capability that the daemon does not have.

import CLinux
import Glibc
import Protocols
import ServiceRuntime

extension ChannelLink {
  static func can(interface: String, owner: any LinkOwner) -> ChannelLink {
    let link = ChannelLink(owner: owner, closedReason: "\(interface) is down")
    let descriptor = clinux_can_open(interface)
    guard descriptor >= 0 else {
      let reason = Self.reason(interface, -descriptor)
      // In a later turn, because the owner has not stored this link yet.
      Loop.post { link.wentDown(reason) }
      return link
    }
    link.adopt(descriptor, named: interface, readSize: SocketCAN.frameLength)
    return link
  }

  /// Why an interface cannot be used, and the remedy.
  private static func reason(_ interface: String, _ error: CInt) -> String {
    switch error {
    case ENODEV: "there is no interface \(interface): check that the adapter is plugged in; ip -br link lists the interfaces"
    case ENETDOWN: "\(interface) is down: sudo ip link set \(interface) up type can bitrate 500000"
    case EPROTONOSUPPORT: "\(interface) is not a CAN interface"
    case EAFNOSUPPORT: "this kernel does not support CAN: sudo modprobe can-raw, or use a slcan: link"
    default: "cannot open \(interface): \(errnoMessage(error))"
    }
  }
}
