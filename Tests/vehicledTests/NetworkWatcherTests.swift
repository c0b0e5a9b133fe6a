// Messages of the kernel about the network: captured bytes, and a watch over a socket pair in place of netlink.

import CLinux
import Glibc
import Protocols
import Testing

@testable import vehicled

@Suite("Watching the network") struct NetworkWatcherTests {
  /// A class, because the macros cannot call mutating methods.
  private final class Changes {
    private var changes = NetworkChanges()
    func process(_ bytes: [UInt8]) -> Bool { changes.process(bytes) }
  }

  /// A message of this type. Its attributes do not matter.
  private static func message(_ type: UInt16, _ body: [UInt8], attributes: [UInt8] = []) -> [UInt8] {
    let length = UInt32(16 + body.count + attributes.count)
    return bytes(length) + bytes(type) + [0, 0] + bytes(UInt32(7)) + bytes(UInt32(0)) + body + attributes
  }

  private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

  private static func link(_ index: Int32, flags: UInt32, deleted: Bool = false) -> [UInt8] {
    let body = [0, 0] + bytes(UInt16(1)) + bytes(index) + bytes(flags) + bytes(UInt32(0))
    return message(deleted ? 17 : 16, body, attributes: [8, 0, 3, 0, 108, 111, 0, 0])
  }
  private static func address(flags: UInt8) -> [UInt8] { message(20, [10, 64, flags, 0] + bytes(UInt32(2))) }
  private static func route(type: UInt8, flags: UInt32 = 0) -> [UInt8] { message(24, [2, 0, 0, 0, 254, 3, 0, type] + bytes(flags)) }

  @Test func `an interface counts when it becomes operational, not for each of its messages`() {
    let changes = Changes()
    let results = [0x1002, 0x1003, 0x1043, 0x1043, 0x1043, 0x1003, 0x1043].map { changes.process(Self.link(3, flags: $0)) }
    #expect(results == [false, false, true, false, false, false, true])
    #expect(changes.process(Self.link(4, flags: 0x1043)), "another interface")
    #expect(!changes.process(Self.link(3, flags: 0x1002, deleted: true)))
    #expect(changes.process(Self.link(3, flags: 0x1043)))
  }

  @Test func `addresses count once they can be used, and routes if they lead somewhere`() {
    let changes = Changes()
    #expect(changes.process(Self.address(flags: 0x80)))
    #expect(!changes.process(Self.address(flags: 0xC0)), "tentative")
    #expect(changes.process(Self.route(type: 1)))
    for type: UInt8 in [0, 2, 3, 5, 6, 7] { #expect(!changes.process(Self.route(type: type))) }
    #expect(!changes.process(Self.route(type: 1, flags: 0x200)), "cached")
    for type: UInt16 in [2, 3, 18, 21, 25, 28] { #expect(!changes.process(Self.message(type, [UInt8](repeating: 1, count: 32)))) }
  }

  @Test func `a datagram may have several messages, and broken ones are ignored`() {
    let changes = Changes()
    #expect(changes.process(Self.route(type: 2) + Self.address(flags: 0)))
    let whole = Self.address(flags: 0)
    for length in 0..<whole.count { #expect(!changes.process(Array(whole.prefix(length)))) }
    for length: UInt32 in [0, 15, 17, .max] { #expect(!changes.process(Self.bytes(length) + whole.dropFirst(4))) }
    #expect(!changes.process(Self.message(20, [2, 24, 0])) && !changes.process(Self.message(16, [0])))
  }

  @Test @Loop func `a burst of messages is reported once`() async {
    var ends: [CInt] = [-1, -1]
    #expect(socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    defer { close(ends[0]) }
    let far = ends[1]
    let watcher = NetworkWatcher { far }
    final class Client { var count = 0 }
    let (client, stopped) = (Client(), Client())
    watcher.watch(for: client) { client.count += 1 }
    watcher.watch(for: stopped) { stopped.count += 1 }
    watcher.stop(for: stopped)
    for burst in 1...2 {
      for _ in 0..<20 { #expect(send(ends[0], Self.route(type: 1), 28, 0) == 28) }
      #expect(await until { client.count == burst })
    }
    #expect(stopped.count == 0)
  }

  @Test @Loop func `without the right to watch, it is tried once`() {
    var attempts = 0
    let watcher = NetworkWatcher {
      attempts += 1
      return -EAFNOSUPPORT
    }
    for _ in 0..<3 { watcher.watch(for: watcher) { Issue.record("there are no changes") } }
    #expect(attempts == 1)
  }

  @Test func `extra attempts have a minimum interval and restart the backoff`() {
    var backoff = Backoff()
    for _ in 0..<10 { _ = backoff.linkWentDown(at: 0) }
    // A flapping network: an event every 100 ms for 10 s.
    let attempts = Set((0..<100).map { backoff.nextAttempt(at: $0 * 100 * .millisecond, interval: .second) })
    #expect(attempts.sorted() == (0...10).map { $0 * .second })
    #expect(backoff.linkWentDown(at: 11 * .second) == .second)
  }
}
