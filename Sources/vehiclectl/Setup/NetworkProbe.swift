// Looks for Wi-Fi adapters at their usual addresses on the local network, and for gpsd on this machine. Only opens and closes a connection;
// sends no data. Tries an address only if it is in the network of an interface, so that no packet leaves this machine's own networks.

import CLinux
import Glibc
import Protocols

enum NetworkProbe {
  /// The usual addresses of adapters, with the kind of device. Source: docs/adapters.md.
  static let addresses = [
    (host: "192.168.0.10", port: UInt16(35000), kind: "obd"), (host: "127.0.0.1", port: UInt16(2947), kind: "position"),
  ]
  /// The timeout of a connection in seconds.
  private static let timeout = 0.7

  /// The adapters that accept a connection. An address for which `isConfigured` returns true is listed without connecting, because most
  /// adapters serve only one client.
  static func candidates(isConfigured: (Candidate) -> Bool) -> [Candidate] {
    let networks = localNetworks()
    return addresses.filter { address in networks.contains { $0.contains(address.host) } }.compactMap { address in
      let candidate = Candidate(transport: "tcp", address: "\(address.host):\(address.port)", kind: address.kind)
      return isConfigured(candidate) || accepts(address.host, address.port) ? candidate : nil
    }
  }

  /// The IPv4 networks of the interfaces that are up.
  private static func localNetworks() -> [IPv4Network] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var networks: [IPv4Network] = []
    var next = first
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard entry.ifa_flags & UInt32(IFF_UP) != 0, let address = number(entry.ifa_addr), let mask = number(entry.ifa_netmask),
        mask != 0, let network = network(of: address, mask: mask)
      else { continue }
      networks.append(network)
    }
    return networks
  }

  /// The network of an interface. `address` and `mask` are in host byte order.
  static func network(of address: UInt32, mask: UInt32) -> IPv4Network? {
    let bytes = stride(from: 24, through: 0, by: -8).map { String(address >> UInt32($0) & 0xFF) }
    return try? IPv4Network("\(bytes.joined(separator: "."))/\(mask.nonzeroBitCount)")
  }

  private static func number(_ address: UnsafePointer<sockaddr>?) -> UInt32? {
    guard let address, address.pointee.sa_family == sa_family_t(AF_INET) else { return nil }
    return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt32(bigEndian: $0.pointee.sin_addr.s_addr) }
  }

  /// Whether a connection is accepted within the timeout.
  static func accepts(_ host: String, _ port: UInt16) -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return false }
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let socket = Glibc.socket(AF_INET, type, 0)
    guard socket >= 0 else { return false }
    defer { close(socket) }
    let result = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
    if result == 0 { return true }
    guard errno == EINPROGRESS else { return false }
    var entry = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
    guard poll(&entry, 1, Int32(timeout * 1000)) == 1 else { return false }
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0
  }
}
