// The addresses that a web server prints for its users.

import Glibc

enum WebAddress {
  /// The URL of a server that listens on the address of `link`. For the wildcard address (`tcp:0.0.0.0:80`), the URLs of all IPv4 addresses
  /// of this computer, separated by spaces.
  static func text(of link: String) -> String {
    let address = link.dropFirst("tcp:".count)
    guard let port = address.split(separator: ":").last, ["0.0.0.0:\(port)", "[::]:\(port)"].contains(String(address)) else {
      return "http://\(address)"
    }
    let hosts = localAddresses()
    return (hosts.isEmpty ? ["127.0.0.1"] : hosts).map { "http://\($0):\(port)" }.joined(separator: " ")
  }

  /// The IPv4 addresses of the interfaces that are up, except loopback.
  private static func localAddresses() -> [String] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var found: [String] = []
    var next = first
    while let interface = next?.pointee {
      next = interface.ifa_next
      let flags = Int32(bitPattern: interface.ifa_flags)
      guard let address = interface.ifa_addr, address.pointee.sa_family == sa_family_t(AF_INET), flags & Int32(IFF_UP) != 0,
        flags & Int32(IFF_LOOPBACK) == 0
      else { continue }
      var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      let size = socklen_t(MemoryLayout<sockaddr_in>.size)
      guard getnameinfo(address, size, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST) == 0 else { continue }
      found.append(String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
    }
    return found
  }
}
