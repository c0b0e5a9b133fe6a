// The watch of the daemon against a mock daemon: results, gaps, invalid replies, disconnects and reconnects.

import CLinux
import Glibc
import Protocols
import Testing
import Varlink

@testable import ServiceRuntime

@Suite struct DaemonWatchTests {
  /// A watch, its loop and what it has delivered.
  private final class Rig {
    let directory: Directory
    let loop: EventLoop
    private(set) var results: [Contract.Watch.Result] = []
    private(set) var times: [Instant] = []
    private(set) var gaps: [Int] = []
    private(set) var failures: [DaemonFailure] = []
    private(set) var watch: DaemonWatch?

    init(
      references: [String]? = nil, interval: Int? = nil, pause: Nanoseconds = 0, timeout: Nanoseconds = DaemonWatch.timeout
    ) throws {
      directory = try Directory()
      loop = try EventLoop(handlesSignals: false)
      watch = DaemonWatch(socket: directory.socket, references, interval, pause: pause, timeout: timeout, loop: loop) {
        [unowned self] event, now in
        switch event {
        case .result(let result):
          results.append(result)
          times.append(now)
        case .gap(let missing): gaps.append(missing)
        case .disconnected(let failure, let retry):
          #expect(retry > now)
          failures.append(failure)
        }
      }
    }

    func daemon() throws -> MockDaemon { try MockDaemon(at: directory.socket, loop: loop) }

    /// Waits for a client of the daemon that has sent its call.
    func client(_ number: Int, of daemon: MockDaemon) throws -> RawPeer {
      #expect(try loop.run { daemon.clients.count > number && !daemon.clients[number].messages.isEmpty })
      return daemon.clients[number]
    }

    /// Waits for this many disconnects.
    func failure(_ number: Int) throws -> DaemonFailure {
      #expect(try loop.run { self.failures.count > number })
      return failures[number]
    }
  }

  private static func reply(_ sequence: Int, _ members: String = "") -> String {
    #"{"parameters":{"sequence":\#(sequence)\#(members)},"continues":true}"#
  }

  @Test func `a watch calls Watch with its parameters and delivers each reply`() throws {
    let rig = try Rig(references: ["ev.rpm"], interval: 500)
    let daemon = try rig.daemon()
    defer { daemon.close() }
    let client = try rig.client(0, of: daemon)
    let call = try VarlinkCall(Array(client.messages[0].utf8))
    let parameters = try call.parameters(as: Contract.Watch.Parameters.self)
    #expect(
      call.method == "io.vehicled.Watch" && call.more && parameters == .init(references: ["ev.rpm"], minimumIntervalMilliseconds: 500))
    client.send(
      Self.reply(0, #","snapshot":[{"name":"ev","kind":"obd","state":"polling","links":[],"readings":[]}]"#),
      Self.reply(1, #","changes":[{"device":"ev","property":"rpm","value":{"int":3},"unit":"rpm","time":7,"age":0.5}]"#), Self.reply(2))
    #expect(try rig.loop.run { rig.results.count == 3 })
    #expect(rig.results[0].snapshot?.map(\.name) == ["ev"])
    #expect(
      rig.results[1].changes == [.init(device: "ev", property: "rpm", value: .int(3), unit: "rpm", time: 7, age: 0.5)])
    #expect(rig.results[2] == .init(sequence: 2) && rig.gaps.isEmpty && rig.failures.isEmpty)
  }

  @Test func `replies arrive whole wherever they are split`() throws {
    let rig = try Rig()
    let daemon = try rig.daemon()
    defer { daemon.close() }
    let client = try rig.client(0, of: daemon)
    let bytes = Array(Self.reply(0).utf8) + [0] + Array(Self.reply(1).utf8) + [0]
    for byte in bytes {
      client.send(bytes: [byte])
      #expect(try rig.loop.run { clinux_unread(rig.watch?.descriptor ?? -1) <= 0 })
    }
    #expect(try rig.loop.run { rig.results.count == 2 })
  }

  @Test func `a gap in the sequence is reported before the next result`() throws {
    let rig = try Rig()
    let daemon = try rig.daemon()
    defer { daemon.close() }
    let client = try rig.client(0, of: daemon)
    client.send(Self.reply(0), Self.reply(1), Self.reply(5))
    #expect(try rig.loop.run { rig.results.count == 3 })
    #expect(rig.gaps == [3] && rig.failures.isEmpty)
  }

  @Test(arguments: [
    ("{\"parameters\":{\"sequence\":0", "invalid reply from vehicled: not JSON: incomplete"),
    ("[]", "invalid reply from vehicled: not a JSON object"),
    (#"{"parameters":{},"continues":true}"#, "invalid reply: \"sequence\" is missing"),
    (#"{"parameters":{"sequence":0}}"#, "vehicled has ended the watch"),
    (#"{"error":"io.vehicled.Unheard","parameters":{}}"#, "vehicled reports io.vehicled.Unheard"),
  ]) func `an invalid reply ends the connection, and the next one works`(_ reply: String, _ message: String) throws {
    let rig = try Rig()
    let daemon = try rig.daemon()
    defer { daemon.close() }
    try rig.client(0, of: daemon).send(reply)
    #expect(try rig.failure(0) == .unavailable(message))
    try rig.client(1, of: daemon).send(Self.reply(0))
    #expect(try rig.loop.run { rig.results.count == 1 })
  }

  @Test func `a sequence that goes back ends the connection`() throws {
    let rig = try Rig()
    let daemon = try rig.daemon()
    defer { daemon.close() }
    try rig.client(0, of: daemon).send(Self.reply(0), Self.reply(4), Self.reply(4))
    #expect(try rig.failure(0) == .unavailable("invalid reply from vehicled: sequence 4 after 4"))
    #expect(rig.results.count == 2)
  }

  @Test(arguments: [
    ([-1], "sequence -1"), ([Int.min], "sequence \(Int.min)"), ([0, Int.min], "sequence \(Int.min) after 0"),
    ([0, Int.max, Int.max], "sequence \(Int.max) after \(Int.max)"), ([Int.max, 0], "sequence 0 after \(Int.max)"),
  ]) func `a sequence out of range ends the connection only`(_ sequences: [Int], _ message: String) throws {
    let rig = try Rig()
    let daemon = try rig.daemon()
    defer { daemon.close() }
    let client = try rig.client(0, of: daemon)
    for sequence in sequences { client.send(Self.reply(sequence)) }
    #expect(try rig.failure(0) == .unavailable("invalid reply from vehicled: \(message)"))
    #expect(rig.gaps == (sequences.dropFirst().first == .max ? [.max - 1] : []))
    try rig.client(1, of: daemon).send(Self.reply(0))
    #expect(try rig.loop.run { rig.results.last?.sequence == 0 && daemon.clients.count == 2 })
  }

  @Test func `an error of the daemon is reported with its message`() throws {
    let rig = try Rig()
    let daemon = try rig.daemon()
    defer { daemon.close() }
    try rig.client(0, of: daemon).send(#"{"error":"org.varlink.service.PermissionDenied","parameters":{"missing":"the remedy"}}"#)
    let failure = try rig.failure(0)
    #expect(failure == .rejected(.permissionDenied(missing: "the remedy")) && failure.message == "permission denied: the remedy")
  }

  @Test func `the watch waits for a daemon, and connects again after it has left`() throws {
    let rig = try Rig()
    let absent = DaemonFailure.unavailable("no process is listening on \(rig.directory.socket); see \"systemctl status vehicled\"")
    #expect(try rig.failure(0) == absent)
    for round in 0..<2 {
      let daemon = try rig.daemon()
      defer { daemon.close() }
      let before = rig.failures.count
      // The sequence of each connection starts again at 0.
      try rig.client(0, of: daemon).send(Self.reply(0), Self.reply(1))
      #expect(try rig.loop.run { rig.results.count == 2 * round + 2 })
      daemon.clients[0].close()
      _ = try rig.client(1, of: daemon)
      #expect(rig.failures.dropFirst(before).contains(.unavailable("vehicled has closed the connection")))
    }
    #expect(rig.gaps.isEmpty)
  }

  @Test func `a daemon that sends nothing counts as dead`() throws {
    let rig = try Rig(timeout: 50 * .millisecond)
    let daemon = try rig.daemon()
    defer { daemon.close() }
    _ = try rig.client(0, of: daemon)
    guard case .unavailable(let message) = try rig.failure(0) else { return #expect(Bool(false)) }
    #expect(message.hasPrefix("no reply from vehicled for "))
    _ = try rig.client(1, of: daemon)
  }

  @Test func `after standing still for too long, the watch connects again instead of reading what the daemon has merged`() throws {
    let rig = try Rig(timeout: 100 * .millisecond)
    let daemon = try rig.daemon()
    defer { daemon.close() }
    let client = try rig.client(0, of: daemon)
    client.send(Self.reply(0))
    #expect(try rig.loop.run { rig.results.count == 1 })
    client.send(Self.reply(1))
    usleep(150_000)
    _ = try rig.failure(0)
    #expect(rig.results.count == 1)
    _ = try rig.client(1, of: daemon)
  }

  @Test func `a watch with a pause reads what has arrived in the meantime at once, and notices the end during the pause`() throws {
    let pause = 300 * Nanoseconds.millisecond
    let rig = try Rig(pause: pause)
    let daemon = try rig.daemon()
    defer { daemon.close() }
    let client = try rig.client(0, of: daemon)
    client.send(Self.reply(0))
    #expect(try rig.loop.run { rig.results.count == 1 })
    for number in 1...3 { client.send(Self.reply(number)) }
    #expect(try rig.loop.run { rig.results.count == 4 })
    #expect(Set(rig.times[1...]).count == 1 && rig.times[1] - rig.times[0] >= pause)
    client.send(Self.reply(4))
    client.close()
    #expect(try rig.failure(0) == .unavailable("vehicled has closed the connection"))
    #expect(rig.results.count == 5)
  }

  @Test func `a pause becomes shorter while more arrives than one read takes, and longer again afterwards`() {
    var pause = ReadPause(longest: 1 * .second)
    #expect(pause.next(isDrained: true) == 1 * .second)
    #expect(pause.next(isDrained: false) == 500 * .millisecond)
    for _ in 0..<20 { _ = pause.next(isDrained: false) }
    #expect(pause.next(isDrained: false) == 1 * .second / 64)
    var lengths: [Nanoseconds] = []
    for _ in 0..<100 { lengths.append(pause.next(isDrained: true)) }
    #expect(lengths == lengths.sorted() && lengths.last == 1 * .second)
    var none = ReadPause(longest: 0)
    #expect(none.next(isDrained: true) == 0 && none.next(isDrained: false) == 0)
  }

  @Test func `a turn of the loop delivers a limited number of replies`() throws {
    let rig = try Rig()
    let daemon = try rig.daemon()
    defer { daemon.close() }
    let client = try rig.client(0, of: daemon)
    let count = 10_000
    client.send(bytes: (0..<count).flatMap { Array(Self.reply($0).utf8) + [0] })
    #expect(try rig.loop.run { rig.results.count == count })
    let perTurn = Dictionary(grouping: rig.times, by: \.self).values.map(\.count)
    #expect((perTurn.max() ?? 0) * Self.reply(0).utf8.count <= CallConnection.readSize + 100)
  }

  @Test func `a closed watch delivers nothing more, even to the handler that closes it`() throws {
    let directory = try Directory()
    let loop = try EventLoop(handlesSignals: false)
    let daemon = try MockDaemon(at: directory.socket, loop: loop)
    defer { daemon.close() }
    var count = 0
    var watch: DaemonWatch?
    watch = DaemonWatch(socket: directory.socket, loop: loop) { _, _ in
      count += 1
      watch?.close()
    }
    #expect(try loop.run { daemon.clients.first?.messages.isEmpty == false })
    daemon.clients[0].send(Self.reply(0), Self.reply(1))
    #expect(try loop.run { daemon.clients[0].hasEnded })
    #expect(count == 1)
  }

  @Test func `the delay between attempts grows to a limit, and starts again after a success`() {
    var delay = RetryDelay()
    let delays = (0..<8).map { _ in delay.next() / .millisecond }
    #expect(delays == [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000])
    delay.reset()
    #expect(delay.next() == 250 * .millisecond)
  }
}

@Suite struct DaemonCallTests {
  private typealias Outcome = Result<Contract.Describe.Result, DaemonFailure>

  /// Calls Describe; `answer` replies as the daemon.
  private func outcome(_ answer: (RawPeer) -> Void) throws -> Outcome? {
    let directory = try Directory()
    let loop = try EventLoop(handlesSignals: false)
    let daemon = try MockDaemon(at: directory.socket, loop: loop)
    defer { daemon.close() }
    var outcome: Outcome?
    DaemonCall(socket: directory.socket, Contract.Describe.self, .init(device: "ev"), loop: loop) { outcome = $0 }
    #expect(try loop.run { daemon.clients.first?.messages.isEmpty == false })
    let call = try VarlinkCall(Array(daemon.clients[0].messages[0].utf8))
    #expect(try call.method == "io.vehicled.Describe" && !call.more && call.parameters(as: Contract.AnyDevice.self) == .init(device: "ev"))
    answer(daemon.clients[0])
    #expect(try loop.run { outcome != nil })
    return outcome
  }

  @Test func `a call returns the result of its method`() throws {
    #expect(try outcome { $0.send(#"{"parameters":{"schemas":[]}}"#) } == .success(.init(schemas: [])))
  }

  @Test func `a call returns the error of the daemon, or why there is no result`() throws {
    #expect(
      try outcome { $0.send(#"{"error":"io.vehicled.NoSuchDevice","parameters":{"device":"ev"}}"#) }
        == .failure(.rejected(.noSuchDevice(device: "ev"))))
    #expect(try outcome { $0.send("garbage") }.map { if case .failure(.unavailable) = $0 { true } else { false } } == true)
    #expect(try outcome { $0.close() } == .failure(.unavailable("vehicled has closed the connection")))
  }

  @Test func `a call without a daemon fails in a later turn`() throws {
    let directory = try Directory()
    let loop = try EventLoop(handlesSignals: false)
    var outcome: Outcome?
    DaemonCall(socket: directory.socket, Contract.Describe.self, .init(), loop: loop) { outcome = $0 }
    #expect(outcome == nil)
    #expect(try loop.run { outcome != nil })
    #expect(outcome == .failure(.unavailable("no process is listening on \(directory.socket); see \"systemctl status vehicled\"")))
  }
}
