// The guardian: it sends the last will when the daemon dies or freezes, and nothing otherwise. It runs on a thread here; the system
// tests run it as a process and kill the daemon.

import CLinux
import Foundation
import Glibc
import Protocols
import Testing

@testable import vehicled

@Suite("Guardian") struct GuardianTests {
  /// A guardian whose daemon is the test, and a link whose other end the test reads, a message at a time.
  private final class Rig: @unchecked Sendable {
    let daemon: CInt
    let peer: CInt
    private let link: CInt
    private let ended = DispatchSemaphore(value: 0)

    init() throws {
      let (line, wire) = (try Self.pair(), try Self.pair())
      (daemon, peer, link) = (line.0, wire.0, wire.1)
      Thread.detachNewThread { [ended] in
        var guardian = GuardianProcess(socket: line.1)
        guardian.run()
        close(line.1)
        ended.signal()
      }
    }

    deinit { for file in [daemon, peer, link] { close(file) } }

    private static func pair() throws -> (CInt, CInt) {
      var ends: [CInt] = [-1, -1]
      try #require(socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
      return (ends[0], ends[1])
    }

    func send(_ message: GuardianMessage, with descriptor: CInt = -1) {
      let packet = message.packet
      #expect(clinux_send(daemon, packet, packet.count, descriptor) == 0)
    }

    func register(_ number: UInt16 = 7, _ will: LastWill = GuardianTests.will) { send(.register(link: number, will), with: link) }
    func die() { shutdown(daemon, CInt(SHUT_WR)) }
    func ends() -> Bool { ended.wait(timeout: .now() + 10) == .success }

    /// The next message from a socket, or nil when none comes within ten seconds.
    func next(from file: CInt) -> [UInt8]? {
      var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, 10_000) == 1 else { return nil }
      var bytes = [UInt8](repeating: 0, count: 2000)
      let count = recv(file, &bytes, bytes.count, 0)
      return count > 0 ? Array(bytes.prefix(count)) : nil
    }

    /// The next message of the guardian that is not a reply to a heartbeat.
    func nextIntervention() -> [UInt8]? {
      while let message = next(from: daemon) { if message.count == 2 { return message } }
      return nil
    }

    /// Fills the link until it accepts no more bytes.
    func fill() {
      let bytes = [UInt8](repeating: 0, count: 1000)
      while Glibc.send(link, bytes, bytes.count, 0) > 0 {}
    }

    var isSilent: Bool {
      var byte: UInt8 = 0
      return recv(peer, &byte, 1, CInt(MSG_PEEK)) < 0 && errno == EAGAIN
    }
  }

  static let will = LastWill(
    dead: [LastWill.Message(Array("stop".utf8)), LastWill.Message(Array("bye".utf8), after: 20 * .millisecond)],
    frozen: [LastWill.Message(Array("halt".utf8))])

  @Test func `packets round-trip`() {
    let messages: [GuardianMessage] = [
      .register(link: 0x1234, Self.will), .register(link: 1, LastWill(dead: [], frozen: [])), .heartbeat(link: 3, milliseconds: 300),
      .unwatch(link: 4), .release(link: 65535),
    ]
    for message in messages {
      #expect(GuardianMessage(message.packet) == message)
      for length in 0..<message.packet.count { #expect(GuardianMessage(message.packet.prefix(length)) == nil) }
    }
    let most = LastWill(dead: [LastWill.Message](repeating: LastWill.Message([UInt8](repeating: 1, count: 1024)), count: 20), frozen: [])
    #expect(most.dead.count == 16 && GuardianMessage.register(link: 1, most).packet.count < GuardianMessage.maxSize)
  }

  @Test func `when the daemon dies, the guardian sends the last will in order and exits`() throws {
    let rig = try Rig()
    rig.register()
    rig.die()
    #expect(rig.next(from: rig.peer) == Array("stop".utf8))
    #expect(rig.next(from: rig.peer) == Array("bye".utf8))
    #expect(rig.ends() && rig.isSilent)
  }

  @Test func `a released link gets no messages`() throws {
    let rig = try Rig()
    rig.register(1)
    rig.register(2, LastWill(dead: [LastWill.Message([2])], frozen: []))
    rig.send(.release(link: 1))
    rig.die()
    #expect(rig.next(from: rig.peer) == [2])
    #expect(rig.ends() && rig.isSilent)
  }

  @Test func `a new last will replaces the old one`() throws {
    let rig = try Rig()
    rig.register()
    rig.register(7, LastWill(dead: [LastWill.Message([9])], frozen: []))
    rig.die()
    #expect(rig.next(from: rig.peer) == [9])
    #expect(rig.ends() && rig.isSilent)
  }

  @Test func `missing heartbeats mean a frozen daemon only while a device is driven`() throws {
    let rig = try Rig()
    rig.register()
    rig.send(.heartbeat(link: 7, milliseconds: 500))
    rig.send(.unwatch(link: 7))
    usleep(800_000)
    #expect(rig.isSilent)
    rig.send(.heartbeat(link: 7, milliseconds: 50))
    #expect(rig.next(from: rig.peer) == Array("halt".utf8))
    #expect(rig.nextIntervention() == [0, 7])
    usleep(100_000)
    #expect(rig.isSilent, "it is sent once")
    // The daemon continues, and the guardian with it.
    rig.send(.heartbeat(link: 7, milliseconds: 50))
    #expect(rig.next(from: rig.peer) == Array("halt".utf8))
    rig.die()
    #expect(rig.next(from: rig.peer) == Array("stop".utf8))
    #expect(rig.ends())
  }

  @Test func `a full link delays the guardian's exit for a limited time`() throws {
    let rig = try Rig()
    rig.fill()
    rig.register()
    rig.die()
    #expect(rig.ends())
  }

  @Test func `invalid packets are ignored`() throws {
    let rig = try Rig()
    for bytes: [UInt8] in [[0], [0x6B, 0, 1, 0xFF], [0x62], [UInt8](repeating: 0x6B, count: 3000)] {
      #expect(clinux_send(rig.daemon, bytes, bytes.count, rig.daemon) == 0)
    }
    rig.send(.register(link: 1, Self.will))  // without a descriptor
    rig.register(2, LastWill(dead: [LastWill.Message([5])], frozen: []))
    rig.die()
    #expect(rig.next(from: rig.peer) == [5])
    #expect(rig.ends())
  }
}
