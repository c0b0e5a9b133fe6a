// The link to a CAN interface, over a pair of sockets that keep frames apart as a CAN socket does.

import CLinux
import Foundation
import Glibc
import Protocols
import Synchronization
import Testing

@testable import vehicled

/// Records the calls of a link.
@Loop private final class Owner: LinkOwner {
  var isUp = false
  var detailChanges = 0
  var frames: [CANFrame] = []
  var times: [Instant] = []
  var results: [SendID: String?] = [:]
  var end: String?
  func linkCameUp(maximumSend: Int?) { isUp = true }
  func linkReceived(_ bytes: [UInt8]) {}
  func linkReceived(_ bytes: [UInt8], at time: Instant) {
    SocketCAN.decode(bytes) { frames.append($0) }
    times.append(time)
  }
  func linkSent(_ id: SendID, failure: String?) { results[id] = failure }
  func linkDetailsChanged() { detailChanges += 1 }
  func linkWentDown(_ reason: String, final: Bool) { end = reason }
}

@Suite("CAN interfaces") @Loop struct CANLinkTests {
  /// A link on one end of a new pair of sockets, its owner, and the other end.
  private func pair() async -> (link: CANLink, owner: Owner, other: CInt) {
    var ends: [CInt] = [-1, -1]
    #expect(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let owner = Owner()
    let link = CANLink(interface: "can0", descriptor: ends[0], owner: owner)
    #expect(await until { owner.isUp })
    return (link, owner, ends[1])
  }

  /// The same over UDP, whose sockets record when each datagram arrived.
  private func timedPair() async throws -> (link: CANLink, owner: Owner, other: CInt) {
    let ends = (0..<2).map { _ in socket(AF_INET, CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(ends[0], $0, length) | getsockname(ends[0], $0, &length) | connect(ends[1], $0, length)
      }
    }
    try #require(result == 0)
    _ = clinux_can_received(ends[0])
    let owner = Owner()
    let link = CANLink(interface: "can0", descriptor: ends[0], owner: owner)
    #expect(await until { owner.isUp })
    return (link, owner, ends[1])
  }

  private let request = SocketCAN.bytes(of: CANFrame(CANIdentifier(number: 0x7E4, is29Bit: false), [3, 0x22, 1, 1]))

  private func error(_ classes: UInt32, _ flags: UInt8 = 0) -> [UInt8] {
    SocketCAN.bytes(of: CANFrame(CANIdentifier(number: classes, is29Bit: true), .error, [0, flags, 0, 0, 0, 0, 0, 0]))
  }

  private func write(_ bytes: [UInt8], to descriptor: CInt) { #expect(Glibc.write(descriptor, bytes, bytes.count) == bytes.count) }

  @Test func `frames are written one by one and received with a time`() async {
    let (link, owner, other) = await pair()
    defer { close(other) }
    let before = Clock.monotonic()
    link.send(request, id: 1)
    link.send(request, id: 2)
    #expect(owner.results == [1: nil, 2: nil])
    var buffer = [UInt8](repeating: 0, count: 64)
    #expect(read(other, &buffer, 64) == 16 && Array(buffer.prefix(16)) == request && read(other, &buffer, 64) == 16)
    write(request, to: other)
    write(request, to: other)
    #expect(await until { owner.frames.count == 2 })
    #expect(owner.times.allSatisfy { (before...Clock.monotonic()).contains($0) } && link.details.isEmpty && link.problem == nil)
    link.close()
  }

  @Test func `frames that are waiting are received together, and before the end of the link`() async {
    let (link, owner, other) = await pair()
    defer { close(other) }
    let frames = (0..<8).map { CANFrame(CANIdentifier(number: 0x7EC, is29Bit: false), [0x20 | $0, 1, 2, 3]) }
    for frame in frames { write(SocketCAN.bytes(of: frame), to: other) }
    #expect(await until { owner.frames.count == 8 })
    #expect(owner.frames == frames && owner.times.count == 1)
    write(SocketCAN.bytes(of: frames[0]), to: other)
    write(error(0x40), to: other)
    write(SocketCAN.bytes(of: frames[1]), to: other)
    #expect(await until { owner.end != nil })
    #expect(owner.frames == frames + [frames[0]])
    link.close()
  }

  @Test func `frames that are read late have the times at which they arrived`() async throws {
    let (link, owner, other) = try await timedPair()
    defer { close(other) }
    let frames = (0..<6).map { CANFrame(CANIdentifier(number: 0x7EC, is29Bit: false), [0x20 | $0, 1, 2, 3]) }
    var sent: [Instant] = []
    for frame in frames {
      // This blocks the loop. The first two frames, and the last two, arrive together.
      if ![1, 5].contains(sent.count) { usleep(10_000) }
      sent.append(Clock.monotonic())
      write(SocketCAN.bytes(of: frame), to: other)
    }
    #expect(await until { owner.frames.count == 6 })
    // On a busy machine, those do not arrive together.
    #expect(owner.frames == frames && (4...6).contains(owner.times.count), "\(owner.times.count)")
    let span = try #require(owner.times.last) - owner.times[0]
    #expect(abs(span - (sent[5] - sent[0])) < 10 * .millisecond && owner.times == owner.times.sorted())
    link.close()
  }

  @Test func `frames that the full queue rejects are sent in order once there is room`() async {
    let (link, owner, other) = await pair()
    defer { close(other) }
    // Fills the queue, and some more.
    var count: SendID = 0
    while count < 5000, owner.results.count == Int(count) {
      count += 1
      link.send(SocketCAN.bytes(of: CANFrame(CANIdentifier(number: count, is29Bit: true), [1])), id: count)
    }
    for _ in 0..<20 {
      count += 1
      link.send(SocketCAN.bytes(of: CANFrame(CANIdentifier(number: count, is29Bit: true), [1])), id: count)
    }
    #expect(owner.results.count < Int(count))
    var numbers: [UInt32] = []
    #expect(
      await until {
        var buffer = [UInt8](repeating: 0, count: 16)
        while read(other, &buffer, 16) == 16 { SocketCAN.decode(buffer) { numbers.append($0.identifier.number) } }
        return numbers.count == Int(count)
      })
    #expect(numbers == (1...count).map { UInt32($0) } && owner.results.count == Int(count) && link.problem == nil)
    link.close()
  }

  @Test func `frames that cannot be sent for a second are discarded with a warning`() async {
    let (link, owner, other) = await pair()
    defer { close(other) }
    var count: SendID = 0
    while count < 5000, owner.results.count == Int(count) {
      count += 1
      link.send(request, id: count)
    }
    #expect(await until { owner.results.count == Int(count) })
    #expect(owner.results[count] == "the queue of can0 is full" && owner.detailChanges == 1)
    #expect(link.details["send-queue"] == "full" && link.problem?.contains("no other node acknowledges") == true)
    var buffer = [UInt8](repeating: 0, count: 16)
    while read(other, &buffer, 16) == 16 {}
    link.send(request, id: 9999)
    #expect(owner.results[9999] == .some(nil) && link.details.isEmpty && link.problem == nil && owner.detailChanges == 2)
    link.close()
  }

  @Test func `error frames are states of the link`() async {
    let (link, owner, other) = await pair()
    defer { close(other) }
    write(error(0x04, 0x20), to: other)
    #expect(await until { link.details["bus"] == "error-passive" })
    #expect(link.problem?.contains("check bit rate, wiring and termination") == true && owner.frames.count == 1)
    write(error(0x04, 0x40), to: other)
    #expect(await until { link.details.isEmpty && link.problem == nil && owner.detailChanges == 2 })
    write(error(0x40), to: other)
    #expect(await until { owner.end != nil })
    #expect(owner.end?.hasPrefix("can0 is bus-off: check wiring") == true && owner.end?.contains("restart-ms") == true)
  }

  @Test func `the end of the interface is reported once`() async {
    let (link, owner, other) = await pair()
    close(other)
    #expect(await until { owner.end != nil })
    #expect(owner.end?.hasPrefix("can0 is down: sudo ip link set can0 up type can bitrate") == true)
    link.send(request, id: 1)
    #expect(owner.results.isEmpty)
  }

  @Test func `a missing interface is reported with a remedy`() async {
    let owner = Owner()
    let link = CANLink(interface: "can99", owner: owner)
    #expect(await until { owner.end != nil })
    let reason = owner.end ?? ""
    // The first one is that of a kernel without CAN.
    #expect(reason.contains("modprobe can-raw") || reason.hasPrefix("there is no interface can99"), "\(reason)")
    #expect(!owner.isUp && link.details.isEmpty)
  }

  /// The reason why a link over a socket of the service goes down, if `serve` gets the connection as descriptor.
  private func failure(listening: Bool = true, _ serve: @escaping @Sendable (CInt) -> Void) async throws -> String? {
    let folder = try Folder()
    let path = "\(folder.path)/can"
    let server = socket(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue), 0)
    if listening {
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      let length = socklen_t(MemoryLayout<sockaddr_un>.size)
      let result = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(server, $0, length) }
      }
      try #require(result == 0 && listen(server, 1) == 0)
    }
    let thread = Thread {
      let connection = accept(server, nil, nil)
      serve(connection)
      close(connection)
    }
    if listening { thread.start() }
    let owner = Owner()
    let link = CANLink(interface: "lo", service: CANSocketService(path: path, timeout: 100 * .millisecond), owner: owner)
    #expect(await until { owner.end != nil })
    link.close()
    close(server)
    return owner.end
  }

  @Test func `a socket from the service is bound to the interface`() async throws {
    // The loopback interface is up, and no CAN interface: binding has succeeded up to that check.
    let reason = try await failure { connection in
      let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
      var code: Int32 = 0
      #expect(clinux_send(connection, &code, 4, descriptor) == 0)
      close(descriptor)
    }
    #expect(reason == "lo is not a CAN interface")
  }

  @Test func `the service is not asked for a socket while there is no interface`() async throws {
    let owner = Owner()
    let link = CANLink(interface: "absent0", service: CANSocketService(path: "/nowhere"), owner: owner)
    #expect(await until { owner.end != nil })
    #expect(owner.end == "there is no interface absent0: check that the adapter is plugged in; ip -br link lists the interfaces")
    link.close()
  }

  @Test func `failures of the service are reported with a remedy`() async throws {
    let reason = try await failure { connection in
      var code: Int32 = EAFNOSUPPORT
      #expect(clinux_send(connection, &code, 4, -1) == 0)
    }
    #expect(reason == "cannot use lo: this kernel does not support CAN: sudo modprobe can-raw, or use a slcan: link")
    #expect(try await failure { _ in }?.hasPrefix("cannot use lo: vehicled-can@.service failed; see: journalctl") == true)
    #expect(try await failure { _ in usleep(300_000) }?.hasPrefix("cannot use lo: vehicled-can@.service does not respond") == true)
    #expect(try await failure(listening: false) { _ in }?.contains("sudo systemctl start vehicled-can.socket") == true)
  }

  @Test func `the kernel's time of a frame is the time of the input`() {
    let now = Clock.monotonic()
    let wall = Clock.wall() * 1000
    #expect((now - .second...now - 19 * .millisecond).contains(Clock.monotonic(ofWall: wall - 20 * .millisecond, at: now)))
    for unknown in [-1, 0, wall - 5 * .second, wall + 5 * .second] { #expect(Clock.monotonic(ofWall: unknown, at: now) == now) }
    let probe = Probe()
    let times = Mutex<[Instant]>([])
    probe.onInput { input, time, _ in if case .received = input { times.withLock { $0.append(time) } } }
    let device = device(probe, links: [(.main, .can(interface: "can99"))])
    for time in [now - 5, now - 9, now + 3] { device.received([1], from: device.ports[0], at: time) }
    #expect(times.withLock { $0 } == [now - 5, now - 5, now + 3])
  }
}
