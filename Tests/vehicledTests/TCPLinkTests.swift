// The socket options of TCP links.

import CLinux
import Foundation
import Glibc
import Protocols
import Testing

@testable import vehicled

@Suite("TCP links") struct TCPLinkTests {
  @Loop private final class Owner: LinkOwner {
    var isUp = false
    func linkCameUp(maximumSend: Int?) { isUp = true }
    func linkReceived(_ bytes: [UInt8]) {}
    func linkSent(_ id: SendID, failure: String?) {}
    func linkDetailsChanged() {}
    func linkLostPeer(_ reason: String) {}
    func linkWentDown(_ reason: String, final: Bool) {}
  }

  /// A listener on loopback and its port.
  private static func listen() throws -> (file: CInt, port: Int) {
    let file = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
        bind(file, place, length) == 0 && Glibc.listen(file, 1) == 0 && getsockname(file, place, &length) == 0
      }
    }
    try #require(result)
    return (file, Int(UInt16(bigEndian: address.sin_port)))
  }

  private static func option(_ file: CInt, _ option: CInt) -> CInt? {
    var value: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    return getsockopt(file, CInt(IPPROTO_TCP), option, &value, &length) == 0 ? value : nil
  }

  @Test(arguments: [true, false]) @Loop func `the socket timeouts depend on disconnectsUnresponsivePeer`(
    _ disconnectsUnresponsivePeer: Bool
  ) async throws {
    let (file, port) = try Self.listen()
    defer { close(file) }
    let owner = Owner()
    let link = ChannelLink.tcp(host: "127.0.0.1", port: port, disconnectsUnresponsivePeer: disconnectsUnresponsivePeer, owner: owner)
    defer { link.close() }
    for _ in 0..<500 where !owner.isUp { try await Task.sleep(for: .milliseconds(10)) }
    let descriptor = try #require(owner.isUp ? link.descriptor : nil)
    #expect(Self.option(descriptor, TCP_USER_TIMEOUT) == (disconnectsUnresponsivePeer ? 25_000 : 3_600_000))
    // Older kernels do not have the option; its default is 2 min.
    if let time = Self.option(descriptor, ChannelLink.maxBackoff.option) {
      #expect(time == (disconnectsUnresponsivePeer ? 120_000 : ChannelLink.maxBackoff.milliseconds))
    }
  }
}
