// Messages about CAN interfaces of the kernel.

import Glibc

/// Why a CAN interface cannot be used, and the remedy. `code` is that of `clinux_can_open`, or of a failed read or write.
public func canInterfaceMessage(_ interface: String, _ code: CInt) -> String {
  switch code {
  case ENODEV, ENXIO: "there is no interface \(interface): check that the adapter is plugged in; ip -br link lists the interfaces"
  case ENETDOWN: "\(interface) is down: sudo ip link set \(interface) up\(bitRateArguments(interface))"
  case EHOSTDOWN:
    "\(interface) is bus-off: check wiring, termination and bit rate; then sudo ip link set \(interface) type can restart, or restart-ms 100"
  case EPROTONOSUPPORT: "\(interface) is not a CAN interface"
  case EAFNOSUPPORT: canUnsupported
  default: "cannot use \(interface): \(errnoMessage(code))"
  }
}

public let canUnsupported = "this kernel does not support CAN: sudo modprobe can-raw, or use a slcan: link"

/// A virtual interface has no bit rate.
private func bitRateArguments(_ interface: String) -> String { interface.hasPrefix("v") ? "" : " type can bitrate 500000" }
