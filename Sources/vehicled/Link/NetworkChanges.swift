// Decides from the kernel's messages whether the network may have come back: a new usable address, a new route, or an interface that
// has become operational. Sources: netlink(7), rtnetlink(7), <linux/if_addr.h>.

import Protocols

struct NetworkChanges {
  /// Whether each interface is operational, by its index. An interface has no entry before its first message.
  private var interfaces: [Int32: Bool] = [:]

  private enum Message {
    static let newLink: UInt16 = 16
    static let deletedLink: UInt16 = 17
    static let newAddress: UInt16 = 20
    static let newRoute: UInt16 = 24
  }

  /// Handles the bytes of one datagram, which are in native byte order. Returns whether the network may have come back.
  mutating func process(_ bytes: [UInt8]) -> Bool {
    var result = false
    bytes.withUnsafeBytes { bytes in
      var start = 0
      while start + 16 <= bytes.count {
        let length = Int(bytes.loadUnaligned(fromByteOffset: start, as: UInt32.self))
        guard length >= 16, start + length <= bytes.count else { return }
        let type = bytes.loadUnaligned(fromByteOffset: start + 4, as: UInt16.self)
        if handle(type, UnsafeRawBufferPointer(rebasing: bytes[(start + 16)..<(start + length)])) { result = true }
        start += (length + 3) & ~3
      }
    }
    return result
  }

  private mutating func handle(_ type: UInt16, _ body: UnsafeRawBufferPointer) -> Bool {
    switch type {
    case Message.newLink:
      // struct ifinfomsg: family, type, index, flags, change.
      guard body.count >= 16 else { return false }
      let index = body.loadUnaligned(fromByteOffset: 4, as: Int32.self)
      // IFF_UP and IFF_RUNNING. The kernel also sends this message for each scan of a wireless interface.
      let isOperational = body.loadUnaligned(fromByteOffset: 8, as: UInt32.self) & 0x41 == 0x41
      return interfaces.updateValue(isOperational, forKey: index) != isOperational && isOperational
    case Message.deletedLink:
      guard body.count >= 16 else { return false }
      interfaces[body.loadUnaligned(fromByteOffset: 4, as: Int32.self)] = nil
      return false
    case Message.newAddress:
      // struct ifaddrmsg: family, prefix length, flags, scope, index. An IPv6 address that is tentative (0x40) cannot be used yet.
      return body.count >= 8 && body[2] & 0x40 == 0
    case Message.newRoute:
      // struct rtmsg: family, lengths, tos, table, protocol, scope, type, flags. Only unicast routes (1), no cached copies (0x200).
      return body.count >= 12 && body[7] == 1 && body.loadUnaligned(fromByteOffset: 8, as: UInt32.self) & 0x200 == 0
    default: return false
    }
  }
}
