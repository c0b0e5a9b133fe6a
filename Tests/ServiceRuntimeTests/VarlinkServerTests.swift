// The Varlink server over its socket: order, streams, errors, rights, limits, and clients that misbehave.

import CLinux
import Foundation
import Protocols
import Testing
import Varlink

@testable import ServiceRuntime

/// A small interface with an error of its own.
private enum Test {
  static let text = """
    interface io.vehicled.test

    method Echo(text: string) -> (text: string)
    method Later(text: string) -> (text: string)
    method Stream(count: int) -> (text: string)
    method Fail() -> ()
    method Guarded() -> ()

    error Sour(fruit: string)

    """

  struct Text: VarlinkParameters, Equatable {
    enum CodingKeys: CodingKey, CaseIterable { case text }
    var text: String
  }
  struct Count: VarlinkParameters {
    enum CodingKeys: CodingKey, CaseIterable { case count }
    var count: Int
  }
  enum Echo: VarlinkMethod {
    static let name = "io.vehicled.test.Echo"
    typealias Parameters = Text
    typealias Result = Text
  }
  enum Later: VarlinkMethod {
    static let name = "io.vehicled.test.Later"
    typealias Parameters = Text
    typealias Result = Text
  }
  enum Stream: VarlinkMethod {
    static let name = "io.vehicled.test.Stream"
    typealias Parameters = Count
    typealias Result = Text
  }
  enum Fail: VarlinkMethod {
    static let name = "io.vehicled.test.Fail"
    typealias Parameters = NoParameters
    typealias Result = NoParameters
  }
  enum Guarded: VarlinkMethod {
    static let name = "io.vehicled.test.Guarded"
    typealias Parameters = NoParameters
    typealias Result = NoParameters
  }
  struct Sour: VarlinkError {
    var name: String { "io.vehicled.test.Sour" }
    var parameters: JSON { ["fruit": .string("lemon")] }
  }
}

/// A server, its loop, and what its methods have seen.
private final class Rig {
  let directory: Directory
  let loop: EventLoop
  private(set) var server: VarlinkServer?
  private(set) var echoed: [String] = []
  private(set) var postponed: [MethodCall<Test.Later>] = []
  private(set) var streams: [MethodCall<Test.Stream>] = []
  private(set) var sent = 0
  private(set) var cancelled = 0
  /// The decision about Guarded; nil decides later.
  var denial: String?? = .some(nil)
  private(set) var decide: ((String?) -> Void)?

  init(limits: VarlinkServer.Limits = .init()) throws {
    directory = try Directory()
    loop = try EventLoop(handlesSignals: false)
    let server = VarlinkServer(
      product: "test", interfaces: [Interface(Test.text)], methods: methods, limits: limits, loop: loop, isKnown: { _ in true }
    ) { [unowned self] right, _, decide in
      #expect(right == .control)
      if let denial { decide(denial) } else { self.decide = decide }
    }
    try server.start(path: directory.socket, mode: 0o666)
    self.server = server
  }

  deinit { server?.close() }

  private var methods: [ServerMethod] {
    [
      ServerMethod(Test.Echo.self, right: nil) { [unowned self] call in
        echoed.append(call.parameters.text)
        call.reply(call.parameters)
      },
      ServerMethod(Test.Later.self, right: nil) { [unowned self] in postponed.append($0) },
      ServerMethod(Test.Stream.self, right: nil, requiresMore: true) { [unowned self] call in
        streams.append(call)
        call.onCancel { self.cancelled += 1 }
        call.onRoom { self.fill(call) }
        fill(call)
      },
      ServerMethod(Test.Fail.self, right: nil) { _ in throw Test.Sour() },
      ServerMethod(Test.Guarded.self, right: .control) { $0.reply(NoParameters()) },
    ]
  }

  /// Sends replies of 1 KiB while there is room, then the last one.
  private func fill(_ call: MethodCall<Test.Stream>) {
    while call.hasRoom, sent < call.parameters.count {
      sent += 1
      call.send(.init(text: String(repeating: "x", count: 1024)))
    }
    if sent == call.parameters.count { call.reply(.init(text: "end")) }
  }

  func client() throws -> RawPeer { try RawPeer(to: directory.socket, loop: loop) }

  /// Sends calls and waits for this many replies.
  func replies(to calls: String..., count: Int? = nil) throws -> [String] {
    let client = try client()
    defer { client.close() }
    for call in calls { client.send(call) }
    #expect(try loop.run { client.messages.count >= count ?? calls.count })
    return client.messages
  }
}

private func echo(_ text: String, _ flags: String = "") -> String {
  #"{"method":"io.vehicled.test.Echo","parameters":{"text":"\#(text)"}\#(flags)}"#
}
private func later(_ text: String) -> String { #"{"method":"io.vehicled.test.Later","parameters":{"text":"\#(text)"}}"# }
private func stream(_ count: Int) -> String {
  #"{"method":"io.vehicled.test.Stream","parameters":{"count":\#(count)},"more":true}"#
}
private func result(_ text: String) -> String { #"{"parameters":{"text":"\#(text)"}}"# }

@Suite struct VarlinkServerTests {
  // MARK: Calls

  @Test func `pipelined calls are answered in order, also if one is answered later`() throws {
    let rig = try Rig()
    let client = try rig.client()
    defer { client.close() }
    client.send(echo("a"), later("b"), echo("c"))
    #expect(try rig.loop.run { rig.postponed.count == 1 })
    #expect(client.messages == [result("a")] && rig.echoed == ["a"])
    rig.postponed[0].reply(.init(text: "b"))
    #expect(try rig.loop.run { client.messages.count == 3 })
    #expect(client.messages == [result("a"), result("b"), result("c")])
  }

  @Test func `a oneway call gets no reply, not even an error`() throws {
    let rig = try Rig()
    let unknown = #"{"method":"io.vehicled.test.None","oneway":true}"#
    #expect(try rig.replies(to: echo("a", #","oneway":true"#), unknown, echo("b"), count: 1) == [result("b")])
    #expect(rig.echoed == ["a", "b"])
  }

  @Test func `oneway calls are carried out after the client has left, other calls are not`() throws {
    let rig = try Rig()
    let client = try rig.client()
    client.send(echo("a", #","oneway":true"#), echo("b"), echo("c", #","oneway":true"#))
    client.close()
    #expect(try rig.loop.run { rig.echoed.count >= 2 && rig.server?.connections == 0 })
    #expect(rig.echoed.first == "a" && rig.echoed.last == "c" && rig.streams.isEmpty)
  }

  @Test func `a client that has shut down its sending side gets its replies`() throws {
    let rig = try Rig()
    let client = try rig.client()
    defer { client.close() }
    client.send(later("a"), echo("b"))
    shutdown(client.socket, Int32(SHUT_WR))
    #expect(try rig.loop.run { rig.postponed.count == 1 })
    rig.postponed[0].reply(.init(text: "a"))
    #expect(try rig.loop.run { client.hasEnded })
    #expect(client.messages == [result("a"), result("b")])
  }

  @Test func `calls arrive whole wherever they are split`() throws {
    let rig = try Rig()
    let client = try rig.client()
    defer { client.close() }
    for byte in Array(echo("a").utf8) + [0] {
      client.send(bytes: [byte])
      var turns = 0
      _ = try rig.loop.run {
        turns += 1
        return turns > 1
      }
    }
    #expect(try rig.loop.run { client.messages == [result("a")] })
  }

  @Test func `errors are typed, and the connection continues`() throws {
    let rig = try Rig()
    let replies = try rig.replies(
      to: #"{"method":"io.vehicled.test.Fail"}"#, #"{"method":"io.vehicled.test.None"}"#, #"{"method":"io.other.None"}"#,
      #"{"method":"io.vehicled.test.Echo"}"#, #"{"method":"io.vehicled.test.Echo","parameters":{"text":"a","txt":1}}"#,
      #"{"method":"io.vehicled.test.Stream","parameters":{"count":1}}"#, echo("a"))
    let errors = replies.dropLast().compactMap(JSON.init)
    #expect(
      errors.map { $0["error"]?.string } == [
        "io.vehicled.test.Sour", "org.varlink.service.MethodNotFound", "org.varlink.service.InterfaceNotFound",
        "org.varlink.service.InvalidParameter", "org.varlink.service.InvalidParameter", "org.varlink.service.ExpectedMore",
      ])
    #expect(
      errors.map { $0["parameters"] } == [
        ["fruit": .string("lemon")], ["method": .string("io.vehicled.test.None")], ["interface": .string("io.other")],
        ["parameter": .string("text")], ["parameter": .string("txt")], [:],
      ])
    #expect(replies.last == result("a"))
  }

  @Test func `the server describes itself and its interfaces`() throws {
    let rig = try Rig()
    let replies = try rig.replies(
      to: #"{"method":"org.varlink.service.GetInfo"}"#,
      #"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"io.vehicled.test"}}"#)
    #expect(replies[0].contains(#""interfaces":["org.varlink.service","io.vehicled.test"]"#) && replies[0].contains(#""product":"test""#))
    #expect(replies[1].contains("method Echo(text: string)"))
  }

  // MARK: Rights

  @Test func `a method with a right asks for it on every call, and waits for the decision`() throws {
    let rig = try Rig()
    let guarded = #"{"method":"io.vehicled.test.Guarded"}"#
    #expect(try rig.replies(to: guarded) == [#"{"parameters":{}}"#])
    rig.denial = .some("the remedy")
    let replies = try rig.replies(to: guarded, echo("a"))
    let denial = try #require(JSON(replies[0]))
    #expect(denial["error"]?.string == "org.varlink.service.PermissionDenied" && denial["parameters"]?["missing"]?.string == "the remedy")
    #expect(replies[1] == result("a"))
    rig.denial = .none
    let client = try rig.client()
    client.send(guarded, echo("b"))
    #expect(try rig.loop.run { rig.decide != nil })
    #expect(client.messages.isEmpty)
    rig.decide?(nil)
    #expect(try rig.loop.run { client.messages == [#"{"parameters":{}}"#, result("b")] })
    // A decision after the client has left changes nothing.
    client.send(guarded)
    #expect(try rig.loop.run { client.hasSentAll })
    client.close()
    #expect(try rig.loop.run { rig.server?.connections == 0 })
    rig.decide?(nil)
  }

  // MARK: Streams

  @Test func `a stream stops while its client does not read, and continues when it does`() throws {
    let rig = try Rig()
    let client = try rig.client()
    defer { client.close() }
    client.isReading = false
    client.send(stream(2000))
    #expect(try rig.loop.run { rig.streams.first.map { !$0.hasRoom } ?? false })
    #expect(rig.sent < 1000)
    // Another client is served meanwhile.
    #expect(try rig.replies(to: echo("a")) == [result("a")])
    client.isReading = true
    #expect(try rig.loop.run { client.messages.count == 2001 })
    #expect(client.messages.dropLast().allSatisfy { $0.contains(#""continues":true"#) } && client.messages.last == result("end"))
  }

  @Test func `a client that reads nothing is disconnected`() throws {
    var limits = VarlinkServer.Limits()
    limits.slowReader = 30 * .millisecond
    let rig = try Rig(limits: limits)
    let client = try rig.client()
    defer { client.close() }
    client.isReading = false
    client.send(stream(2000))
    #expect(try rig.loop.run { rig.cancelled == 1 && rig.server?.connections == 0 })
  }

  @Test func `replies that wait when the client shuts down its sending side are sent`() throws {
    let rig = try Rig()
    let client = try rig.client()
    defer { client.close() }
    client.isReading = false
    client.send(later("a"))
    shutdown(client.socket, Int32(SHUT_WR))
    #expect(try rig.loop.run { rig.postponed.count == 1 })
    let long = String(repeating: "x", count: 4 << 20)
    rig.postponed[0].reply(.init(text: long))
    var turns = 0
    #expect(
      try rig.loop.run {
        turns += 1
        return turns > 20
      })
    #expect(rig.server?.connections == 1)
    client.isReading = true
    #expect(try rig.loop.run { client.hasEnded && rig.server?.connections == 0 })
    #expect(client.messages == [result(long)])
  }

  @Test func `a client that shuts down its sending side and reads nothing is disconnected`() throws {
    var limits = VarlinkServer.Limits()
    limits.slowReader = 30 * .millisecond
    let rig = try Rig(limits: limits)
    let client = try rig.client()
    defer { client.close() }
    client.isReading = false
    client.send(later("a"))
    shutdown(client.socket, Int32(SHUT_WR))
    #expect(try rig.loop.run { rig.postponed.count == 1 })
    rig.postponed[0].reply(.init(text: String(repeating: "x", count: 4 << 20)))
    #expect(try rig.loop.run { rig.server?.connections == 0 })
  }

  /// The descriptor of a closed session can belong to the next client.
  @Test func `a session that was closed neither reads nor writes`() throws {
    let rig = try Rig()
    let client = try rig.client()
    client.isReading = false
    client.send(stream(2000), echo("a"))
    #expect(try rig.loop.run { rig.streams.first.map { !$0.hasRoom } ?? false })
    let sent = rig.sent
    let stream = rig.streams[0]
    // While a reply is written, the client exceeds the limit of unread output, and its session is closed.
    stream.onRoom { stream.send(.init(text: String(repeating: "x", count: VarlinkFraming.replyLimit + 1 << 20))) }
    client.isReading = true
    #expect(try rig.loop.run { rig.server?.connections == 0 })
    #expect(rig.cancelled == 1 && stream.hasEnded && !stream.hasRoom && rig.echoed.isEmpty && rig.sent == sent)
    stream.send(.init(text: "late"))
    stream.reply(.init(text: "late"))
    client.close()
    #expect(try rig.replies(to: echo("b")) == [result("b")])
  }

  @Test func `a stream ends when its client leaves, even with calls behind it`() throws {
    let rig = try Rig()
    let client = try rig.client()
    client.isReading = false
    client.send(stream(2000), echo("a"))
    #expect(try rig.loop.run { rig.sent > 0 })
    client.close()
    #expect(try rig.loop.run { rig.server?.connections == 0 })
    #expect(rig.cancelled == 1 && rig.echoed.isEmpty && rig.streams[0].hasEnded)
  }

  @Test func `a reply to a client that has just left ends its session`() throws {
    let rig = try Rig()
    let client = try rig.client()
    client.send(later("a"))
    #expect(try rig.loop.run { rig.postponed.count == 1 })
    client.close()
    rig.postponed[0].reply(.init(text: "a"))
    #expect(try rig.loop.run { rig.server?.connections == 0 })
  }

  // MARK: Clients that misbehave

  @Test(arguments: [
    "garbage", "{}", "[]", #"{"method":1}"#, #"{"method":"a.b","more":true,"oneway":true}"#, #"{"method":"a.b","upgrade":true}"#,
    #"{"method":"a.b","method":"a.c"}"#, #"{"method":"a.b","extra":1}"#, "\u{ff}\u{fe}",
  ]) func `a violation of the protocol closes this connection only`(_ call: String) throws {
    let rig = try Rig()
    let (other, client) = (try rig.client(), try rig.client())
    defer { [other, client].forEach { $0.close() } }
    client.send(call, echo("a"))
    #expect(try rig.loop.run { client.hasEnded })
    other.send(echo("b"))
    #expect(try rig.loop.run { other.messages == [result("b")] })
    #expect(rig.echoed == ["b"])
  }

  @Test func `random bytes harm no other client`() throws {
    let rig = try Rig()
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<50 {
      let client = try rig.client()
      client.send(bytes: (0..<Int.random(in: 1...3000, using: &generator)).map { _ in .random(in: 0...255, using: &generator) } + [0])
      #expect(try rig.loop.run { client.hasEnded })
      client.close()
    }
    #expect(try rig.replies(to: echo("a")) == [result("a")])
  }

  @Test func `a call beyond the limit or an incomplete one closes the connection`() throws {
    var limits = VarlinkServer.Limits()
    limits.call = 1024
    limits.incompleteCall = 30 * .millisecond
    let rig = try Rig(limits: limits)
    let (long, incomplete) = (try rig.client(), try rig.client())
    defer { [long, incomplete].forEach { $0.close() } }
    long.send(bytes: [UInt8](repeating: UInt8(ascii: " "), count: 100_000))
    incomplete.send(bytes: [UInt8(ascii: "{")])
    #expect(try rig.loop.run { long.hasEnded && incomplete.hasEnded })
    #expect(try rig.replies(to: echo(String(repeating: "a", count: 900))).count == 1)
  }

  @Test func `a client that sends without reading is not read any further`() throws {
    let rig = try Rig()
    let client = try rig.client()
    defer { client.close() }
    client.isReading = false
    let call = Array(echo(String(repeating: "a", count: 8000)).utf8) + [0]
    client.send(bytes: (0..<300).flatMap { _ in call })
    #expect(try rig.replies(to: echo("b")) == [result("b")])
    var last = -1
    #expect(
      try rig.loop.run {
        defer { last = rig.echoed.count }
        return rig.echoed.count > 30 && rig.echoed.count == last
      })
    #expect(!client.hasSentAll)
    client.isReading = true
    #expect(try rig.loop.run { client.messages.count == 300 })
  }

  @Test func `connections beyond the limit are closed, and others are served`() throws {
    var limits = VarlinkServer.Limits()
    limits.connections = 20
    let rig = try Rig(limits: limits)
    let clients = try (0..<100).map { _ in try rig.client() }
    defer { clients.forEach { $0.close() } }
    #expect(try rig.loop.run { clients.count { $0.hasEnded } == 80 })
    clients.filter { !$0.hasEnded }.forEach { $0.send(echo("a")) }
    #expect(try rig.loop.run { clients.count { $0.messages == [result("a")] } == 20 })
    clients.forEach { $0.close() }
    #expect(try rig.loop.run { rig.server?.connections == 0 })
    #expect(try rig.replies(to: echo("b")) == [result("b")])
  }

  @Test func `no user takes the connections of others`() {
    var counts = ConnectionCounts(limit: 20, reserved: 4, guests: 8)
    func admitted(_ user: UInt32) -> Int { (0..<100).count { _ in counts.admit(user: user, isOwner: user == 0, isGuest: false) } }
    #expect(admitted(1000) == 8 && admitted(1001) == 4 && admitted(1002) == 2)
    #expect(admitted(0) == 6)
    counts.leave(user: 0, isGuest: false)
    counts.leave(user: 1000, isGuest: false)
    #expect(admitted(0) == 2)
  }

  @Test func `users without a right leave connections for those with one, however many they are`() {
    var counts = ConnectionCounts(limit: 20, reserved: 4, guests: 8)
    let guests = (1000..<1100).map { user in (0..<100).count { _ in counts.admit(user: user, isOwner: false, isGuest: true) } }
    #expect(guests.prefix(4) == [4, 2, 1, 1] && guests.reduce(0, +) == 8)
    #expect((0..<100).count { _ in counts.admit(user: 2000, isOwner: false, isGuest: false) } == 4)
    counts.leave(user: 1000, isGuest: true)
    #expect((1004..<1006).map { counts.admit(user: $0, isOwner: false, isGuest: true) } == [true, false])
  }

  @Test func `how often users without a right connect is limited, for each and for all`() {
    var rate = ConnectionRate()
    func admitted(_ users: ClosedRange<UInt32>, _ count: Int, at now: Instant) -> Int {
      (0..<count).reduce(0) { sum, _ in sum + users.count { rate.admit(user: $0, at: now) } }
    }
    func rateLimited() -> [Bool] { [1, 2].map { rate.isRateLimited($0, at: 5 * .second) } }
    #expect(rateLimited() == [false, false])
    #expect(admitted(1...1, 1000, at: 5 * .second) == 64)
    #expect(rateLimited() == [true, false])
    // One user does not delay another, but all users together are limited.
    #expect(admitted(2...2, 1, at: 5 * .second) == 1)
    #expect(admitted(3...100_000, 1, at: 5 * .second) == 256 - 65)
    #expect(admitted(1...1, 1000, at: 5 * .second + 500 * .millisecond) == 32)
    #expect(admitted(200_000...205_000, 1, at: 100 * .second) == 256)
  }

  @Test func `messages about clients are limited`() {
    var limit = LogLimit()
    let lines = (0..<30).map { limit.admit("x", at: .second * 100 + Int64($0)) }
    #expect(lines[..<19].allSatisfy { $0 == "x" } && lines[20...].allSatisfy { $0 == nil })
    #expect(lines[19] == "x; further messages are suppressed for a minute")
    #expect(limit.admit("x", at: .second * 161) == "x")
  }

  // MARK: The socket

  @Test func `the socket file has its mode, replaces a stale one, and is removed`() throws {
    let directory = try Directory()
    let stale = try UnixSocket.listen(at: directory.socket, mode: 0o600, program: "test", option: "--socket")
    #expect(throws: ValueError("\(directory.socket) is in use by another test (pid \(getpid())): stop it, or choose another --socket")) {
      try UnixSocket.listen(at: directory.socket, mode: 0o600, program: "test", option: "--socket")
    }
    Glibc.close(stale)
    let loop = try EventLoop(handlesSignals: false)
    let server = VarlinkServer(product: "test", interfaces: [], methods: [], loop: loop, isKnown: { _ in true }) { _, _, decide in
      decide(nil)
    }
    try server.start(path: directory.socket, mode: 0o666)
    var status = stat()
    #expect(lstat(directory.socket, &status) == 0 && status.st_mode & 0o777 == 0o666)
    server.close()
    #expect(lstat(directory.socket, &status) != 0)
  }

  @Test func `another user cannot prevent the start by locking the directory`() throws {
    let directory = try Directory()
    let held = open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { Glibc.close(held) }
    #expect(flock(held, LOCK_EX | LOCK_NB) == 0)
    let socket = try UnixSocket.listen(at: directory.socket, mode: 0o600, program: "test", option: "--socket")
    defer { Glibc.close(socket) }
    #expect(Files.list(directory.path) == ["socket"])
    // The file of the lock is readable by its owner only, and its lock is respected.
    let lock = try #require(try Files.lock("\(directory.path)/other.lock"))
    var status = stat()
    #expect(fstat(lock, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(throws: ValueError("\(directory.path)/other is locked: another test is starting; try again")) {
      try UnixSocket.listen(at: "\(directory.path)/other", mode: 0o600, program: "test", option: "--socket")
    }
    Glibc.close(lock)
  }

  @Test func `a descriptor from systemd must be a listening socket`() throws {
    let directory = try Directory()
    let socket = try UnixSocket.listen(at: directory.socket, mode: 0o600, program: "test", option: "--socket")
    defer { Glibc.close(socket) }
    _ = fcntl(socket, F_SETFL, 0)  // systemd passes blocking sockets
    try ServerSocket.prepare(passed: socket, program: "test")
    #expect(fcntl(socket, F_GETFL) & O_NONBLOCK != 0)
    let other = eventfd(0, 0)
    defer { Glibc.close(other) }
    #expect(throws: ValueError("systemd passed a descriptor that is not a listening Unix stream socket: check test.socket")) {
      try ServerSocket.prepare(passed: other, program: "test")
    }
  }

  private static let python = ProcessInfo.processInfo.environment["VEHICLED_PYTHON"]

  @Test(.enabled(if: python != nil, "set VEHICLED_PYTHON to a python with the package varlink")) func `the varlink package works`() throws {
    let rig = try Rig()
    let program = Process()
    program.executableURL = URL(fileURLWithPath: try #require(Self.python))
    program.arguments = [
      "-c",
      """
      import sys, varlink
      client = varlink.Client(address="unix:" + sys.argv[1])
      assert set(client.get_interfaces()) == {"org.varlink.service", "io.vehicled.test"}
      with client.open("io.vehicled.test") as test:
          assert test.Echo("ä")["text"] == "ä"
          assert len([reply for reply in test.Stream(5, _more=True)]) == 6
          test.Echo("oneway", _oneway=True)
          try:
              test.Fail()
              raise AssertionError("an error is expected")
          except varlink.VarlinkError as error:
              assert error.error() == "io.vehicled.test.Sour" and error.parameters() == {"fruit": "lemon"}, error
      print("done")
      """, rig.directory.socket,
    ]
    let output = Pipe()
    program.standardOutput = output
    try program.run()
    #expect(try rig.loop.run { !program.isRunning })
    if program.isRunning { program.terminate() }
    #expect(String(decoding: output.fileHandleForReading.availableData, as: UTF8.self) == "done\n")
    #expect(rig.echoed == ["ä", "oneway"])
  }
}
