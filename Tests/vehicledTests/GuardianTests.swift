// The guardian: what it says when the daemon dies or freezes, and that it says nothing otherwise. It runs on a thread here;
// its life as a process is tried by the system tests, which kill the daemon.

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

    func say(_ message: GuardianMessage, with descriptor: CInt = -1) {
      let packet = message.packet
      #expect(clinux_send(daemon, packet, packet.count, descriptor) == 0)
    }

    func keep(_ ward: UInt16 = 7, _ will: Will = GuardianTests.will) { say(.keep(ward: ward, will), with: link) }
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

    /// What the guardian says beside its signs of life.
    func nextWord() -> [UInt8]? {
      while let word = next(from: daemon) { if word.count == 2 { return word } }
      return nil
    }

    /// Fills the link until it takes nothing more.
    func fill() {
      let bytes = [UInt8](repeating: 0, count: 1000)
      while send(link, bytes, bytes.count, 0) > 0 {}
    }

    var isSilent: Bool {
      var byte: UInt8 = 0
      return recv(peer, &byte, 1, CInt(MSG_PEEK)) < 0 && errno == EAGAIN
    }
  }

  static let will = Will(
    dead: [Will.Message(Array("stop".utf8)), Will.Message(Array("bye".utf8), after: 20 * .millisecond)],
    frozen: [Will.Message(Array("halt".utf8))])

  @Test func packetsReadBackAsTheyWereMeant() {
    let messages: [GuardianMessage] = [
      .keep(ward: 0x1234, Self.will), .keep(ward: 1, Will(dead: [], frozen: [])), .beat(ward: 3, milliseconds: 300), .rest(ward: 4),
      .release(ward: 65535),
    ]
    for message in messages {
      #expect(GuardianMessage(message.packet) == message)
      for length in 0..<message.packet.count { #expect(GuardianMessage(message.packet.prefix(length)) == nil) }
    }
    let most = Will(dead: [Will.Message](repeating: Will.Message([UInt8](repeating: 1, count: 1024)), count: 20), frozen: [])
    #expect(most.dead.count == 16 && GuardianMessage.keep(ward: 1, most).packet.count < GuardianMessage.longest)
  }

  @Test func whenTheDaemonDiesItSaysTheLastWordsInOrderAndEnds() throws {
    let rig = try Rig()
    rig.keep()
    rig.die()
    #expect(rig.next(from: rig.peer) == Array("stop".utf8))
    #expect(rig.next(from: rig.peer) == Array("bye".utf8))
    #expect(rig.ends() && rig.isSilent)
  }

  @Test func whatWasReleasedIsNotSaid() throws {
    let rig = try Rig()
    rig.keep(1)
    rig.keep(2, Will(dead: [Will.Message([2])], frozen: []))
    rig.say(.release(ward: 1))
    rig.die()
    #expect(rig.next(from: rig.peer) == [2])
    #expect(rig.ends() && rig.isSilent)
  }

  @Test func aNewWillTakesThePlaceOfTheOld() throws {
    let rig = try Rig()
    rig.keep()
    rig.keep(7, Will(dead: [Will.Message([9])], frozen: []))
    rig.die()
    #expect(rig.next(from: rig.peer) == [9])
    #expect(rig.ends() && rig.isSilent)
  }

  @Test func aDaemonThatShowsNoSignOfLifeIsFrozenOnlyWhileSomebodyDrives() throws {
    let rig = try Rig()
    rig.keep()
    rig.say(.beat(ward: 7, milliseconds: 3000))
    rig.say(.rest(ward: 7))
    usleep(3_300_000)
    #expect(rig.isSilent)
    rig.say(.beat(ward: 7, milliseconds: 50))
    #expect(rig.next(from: rig.peer) == Array("halt".utf8))
    #expect(rig.nextWord() == [0, 7])
    usleep(100_000)
    #expect(rig.isSilent, "it is said once")
    // It lives after all: the guardian is there for the next time.
    rig.say(.beat(ward: 7, milliseconds: 50))
    #expect(rig.next(from: rig.peer) == Array("halt".utf8))
    rig.die()
    #expect(rig.next(from: rig.peer) == Array("stop".utf8))
    #expect(rig.ends())
  }

  @Test func aLinkThatTakesNothingHoldsItUpForAWhileOnly() throws {
    let rig = try Rig()
    rig.fill()
    rig.keep()
    rig.die()
    #expect(rig.ends())
  }

  @Test func garbageIsNoMessageAndCostsNothing() throws {
    let rig = try Rig()
    for bytes: [UInt8] in [[0], [0x6B, 0, 1, 0xFF], [0x62], [UInt8](repeating: 0x6B, count: 3000)] {
      #expect(clinux_send(rig.daemon, bytes, bytes.count, rig.daemon) == 0)
    }
    rig.say(.keep(ward: 1, Self.will))  // without a descriptor
    rig.keep(2, Will(dead: [Will.Message([5])], frozen: []))
    rig.die()
    #expect(rig.next(from: rig.peer) == [5])
    #expect(rig.ends())
  }
}
