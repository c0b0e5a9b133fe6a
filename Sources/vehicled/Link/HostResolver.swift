// Address lookup for TCP peers with getaddrinfo on a separate thread. NIO's resolver uses Dispatch, whose threads log errors under
// the unit's system call filter and wake the process every second.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

/// One lookup for one connection.
final class HostResolver: Resolver, Sendable {
  private static let worker = Worker()
  private let v4 = Loop.eventLoop.makePromise(of: [SocketAddress].self)
  private let v6 = Loop.eventLoop.makePromise(of: [SocketAddress].self)

  func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { v4.futureResult }

  /// Starts the lookup for both address families, because NIO calls this function first.
  func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    if let address = try? SocketAddress(ipAddress: host, port: port) {
      finish([address])
    } else {
      Self.worker.run { () throws(ValueError) in
        Self.addresses(of: host, port: port)
      } then: { [self] result in
        finish((try? result.get()) ?? [])
      }
    }
    return v6.futureResult
  }

  /// A running lookup cannot be cancelled; its result is ignored.
  func cancelQueries() {}

  private func finish(_ addresses: [SocketAddress]) {
    v6.succeed(addresses.filter { $0.protocol == .inet6 })
    v4.succeed(addresses.filter { $0.protocol == .inet })
  }

  /// The addresses of a host in the order of getaddrinfo(3); empty if the lookup fails. Blocks.
  private static func addresses(of host: String, port: Int) -> [SocketAddress] {
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &first) == 0 else { return [] }
    defer { freeaddrinfo(first) }
    return sequence(first: first, next: { $0?.pointee.ai_next }).prefix { $0 != nil }.compactMap { entry in
      guard let info = entry?.pointee, let address = info.ai_addr else { return nil }
      return switch info.ai_family {
      case AF_INET: address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { SocketAddress($0.pointee) }
      case AF_INET6: address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { SocketAddress($0.pointee) }
      default: nil
      }
    }
  }
}
