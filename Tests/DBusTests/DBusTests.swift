// The D-Bus client with a private dbus-daemon: round trips, errors, and calls that end when a peer or the bus dies.

import CLinux
import Foundation
import Synchronization
import Testing

@testable import DBus

/// A bus for one test.
final class PrivateBus {
  let address: String
  let process = Process()
  private let directory: String

  init() throws {
    var template = Array("/tmp/vehicled-bus-XXXXXX".utf8CString)
    directory = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } ?? "" }
    address = "unix:path=\(directory)/bus"
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/dbus-daemon")
    process.arguments = ["--session", "--nofork", "--nopidfile", "--print-address", "--address=\(address)"]
    process.standardOutput = output
    try process.run()
    try #require(!output.fileHandleForReading.availableData.isEmpty)
  }

  deinit {
    end()
    try? FileManager.default.removeItem(atPath: directory)
  }

  func end() {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }
}

/// A connection whose events a test can wait for.
final class Member: Sendable {
  let connection: DBusConnection
  private let events = Events()

  private final class Events: Sendable {
    let state = Mutex((name: String?.none, messages: [DBusMessage](), ended: String?.none))
    let connection = Mutex(DBusConnection?.none)
  }

  init(_ address: String, answer: @escaping @Sendable (DBusMessage) -> DBusMessage? = { _ in nil }) {
    let events = events
    connection = DBusConnection(to: address) { name in
      events.state.withLock { $0.name = name }
    } received: { message in
      events.state.withLock { $0.messages.append(message) }
      if message.kind == .call, let reply = answer(message) { events.connection.withLock { $0 }?.send(reply) }
    } ended: { reason in
      events.state.withLock { $0.ended = reason }
      events.connection.withLock { $0 = nil }
    }
    events.connection.withLock { $0 = connection }
  }

  deinit { connection.close() }

  var name: String? { events.state.withLock { $0.name } }
  var ended: String? { events.state.withLock { $0.ended } }
  /// Copied under the lock: ThreadSanitizer does not see the counts of references that protect shared storage, and takes the next append
  /// in place for a race.
  var messages: [DBusMessage] { events.state.withLock { $0.messages.map { $0 } } }

  func call(_ message: DBusMessage, milliseconds: Int = 5000) async -> Result<DBusMessage, DBusError> {
    await withCheckedContinuation { continuation in
      connection.call(message, milliseconds: milliseconds) { continuation.resume(returning: $0) }
    }
  }
}

func until(_ condition: () -> Bool) async -> Bool {
  for _ in 0..<2000 {
    if condition() { return true }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return condition()
}

/// The number of open eventfds. Each connection has one, and nothing else creates any. Those of other suites come and go, so a later
/// count may be lower.
func openEventDescriptors() -> Int {
  let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
  return descriptors.count { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == "anon_inode:[eventfd]" }
}

@Suite("DBus", .serialized) struct DBusTests {
  static let echo: @Sendable (DBusMessage) -> DBusMessage? = { call in
    switch call.member {
    case "Echo": call.reply(call.body)
    case "Refuse": call.failure("org.example.Error.No", "not today")
    default: nil
    }
  }

  /// Keeps both connections open until the test ends.
  private let members = Members()

  private final class Members: Sendable {
    let all = Mutex([Member]())
    func keep(_ members: [Member]) { all.withLock { $0 = members } }
  }

  private func pair(_ bus: PrivateBus) async throws -> (client: Member, server: Member, name: String) {
    let (client, server) = (Member(bus.address), Member(bus.address, answer: Self.echo))
    try #require(await until { client.name != nil && server.name != nil })
    members.keep([client, server])
    return (client, server, try #require(server.name))
  }

  @Test func `signals from other senders are ignored`() async throws {
    let bus = try PrivateBus()
    let (client, server, name) = try await pair(bus)
    let stranger = Member(bus.address)
    #expect(await until { stranger.name != nil })
    client.connection.receive(only: [name])
    // Calls go through the same queue: once one is answered, the filter is in effect.
    _ = await client.call(.call(name, "/", "org.example.Test", "Echo"))
    for member in [stranger, server] {
      var signal = DBusMessage.signal("/", "org.example.Test", "Said", [.string(member.name ?? "")])
      signal.destination = client.name
      member.connection.send(signal)
    }
    #expect(await until { client.messages.contains { $0.member == "Said" } })
    #expect(client.messages.filter { $0.member == "Said" }.map(\.sender) == [name])
    bus.end()
    #expect(await until { stranger.ended != nil })
  }

  static let values: [DBusValue] = [
    .byte(255), .bool(true), .bool(false), .int16(.min), .uint16(.max), .int32(.min), .uint32(.max), .int64(.min), .uint64(.max),
    .double(-1.5), .string("Grüße\n"), .string(""), .path("/"), .signature("a{sv}"), .bytes([]), .bytes([0, 1, 255]),
    .array(of: "n", [.int16(1), .int16(-1)]), .array(of: "s", []), .structure([.string("a"), .structure([.byte(1)])]),
    .variant(.variant(.string("deep"))),
    .properties(["Name": .string("OBD"), "Data": .bytes([1, 2]), "UUIDs": .strings(["a", "b"]), "Empty": .properties([:])]),
    .array(of: "{oa{sa{sv}}}", [.entry(.path("/a"), .array(of: "{sa{sv}}", [.entry(.string("i"), .properties(["x": .int16(1)]))]))]),
  ]

  @Test func `values of every type round-trip`() async throws {
    let bus = try PrivateBus()
    let (client, _, name) = try await pair(bus)
    let reply = try await client.call(.call(name, "/", "org.example", "Echo", Self.values)).get()
    #expect(reply.body == Self.values)
    #expect(reply.sender == name)
  }

  @Test func `an error reply keeps its error name`() async throws {
    let bus = try PrivateBus()
    let (client, _, name) = try await pair(bus)
    let refused = await client.call(.call(name, "/", "org.example", "Refuse"))
    #expect(throws: DBusError.refused(name: "org.example.Error.No", text: "not today")) { try refused.get() }
    let missing = await client.call(.call("org.example.Nobody", "/", "org.example", "Echo"))
    guard case .failure(.refused(let error, _)) = missing else { return #expect(Bool(false), "\(missing)") }
    #expect(error == "org.freedesktop.DBus.Error.ServiceUnknown" || error == "org.freedesktop.DBus.Error.NameHasNoOwner")
  }

  @Test func `a call without a reply times out, and later calls still work`() async throws {
    let bus = try PrivateBus()
    let (client, _, name) = try await pair(bus)
    let silent = await client.call(.call(name, "/", "org.example", "Silence"), milliseconds: 50)
    #expect(throws: DBusError.timeout) { try silent.get() }
    #expect(try await client.call(.call(name, "/", "org.example", "Echo", [.byte(1)])).get().body == [.byte(1)])
  }

  @Test(arguments: [
    DBusMessage.call("not a name", "/", "a.b", "C"), .call("a.b", "no/slash", "a.b", "C"), .call("a.b", "/a//b", "a.b", "C"),
    .call("a.b", "/", "nodot", "C"), .call("a.b", "/", "a.b", "1C"), .call("a.b", "/", "a.b", "C\u{0}D"),
    .call("a.b", "/", "a.b", "C", [.string("a\u{0}b")]), .call("a.b", "/", "a.b", "C", [.path("relative")]),
    .call("a.b", "/", "a.b", "C", [.array(of: "s", [.byte(1)])]), .call("a.b", "/", "a.b", "C", [.array(of: "{vs}", [])]),
    .call("a.b", "/", "a.b", "C", [.signature("(")]), .call("a.b", "/", "a.b", "C", [.descriptor(DBusDescriptor(owning: -1))]),
  ]) func `a message on which libdbus would abort the process is an error`(_ message: DBusMessage) async throws {
    let bus = try PrivateBus()
    let (client, _, _) = try await pair(bus)
    let result = await client.call(message)
    guard case .failure(.unsendable) = result else { return #expect(Bool(false), "\(result)") }
    #expect(client.ended == nil)
  }

  @Test func `excessive nesting does not crash the process`() async throws {
    let bus = try PrivateBus()
    let (client, _, name) = try await pair(bus)
    var deep = DBusValue.byte(1)
    for _ in 0..<80 { deep = .variant(deep) }
    _ = await client.call(.call(name, "/", "org.example", "Echo", [deep]), milliseconds: 200)
    // The bus may disconnect the sender, but the process survives.
    let other = Member(bus.address)
    #expect(await until { other.name != nil })
  }

  @Test func `file descriptors are passed, and none is leaked`() async throws {
    let bus = try PrivateBus()
    let before = openEventDescriptors()
    var ownEnds: [CInt] = []
    do {
      let (client, _, name) = try await pair(bus)
      for _ in 0..<20 {
        var ends: [CInt] = [-1, -1]
        #expect(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let sent = DBusDescriptor(owning: ends[1])
        let reply = try await client.call(.call(name, "/", "org.example", "Echo", [.descriptor(sent), .uint16(23)])).get()
        let received = try #require(reply.body.first?.descriptor).release()
        #expect(received >= 0 && received != ends[1] && reply.body.count == 2)
        #expect(write(received, "x", 1) == 1)
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 1 && byte == 0x78)
        close(received)
        ownEnds.append(ends[0])
      }
    }
    // The server holds the descriptors that it received. A pipe ends with the last copy of its other end.
    members.keep([])
    for end in ownEnds {
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
      var byte: UInt8 = 0
      #expect(await until { read(end, &byte, 1) == 0 })
      close(end)
    }
    #expect(await until { openEventDescriptors() <= before })
  }

  @Test func `signals arrive in order`() async throws {
    let bus = try PrivateBus()
    let (client, server, _) = try await pair(bus)
    _ = try await client.call(
      .call(DBusDaemon.name, DBusDaemon.path, DBusDaemon.name, "AddMatch", [.string("type='signal',interface='org.example'")])
    ).get()
    for number in UInt32(0)..<1000 { server.connection.send(.signal("/a", "org.example", "Tick", [.uint32(number)])) }
    let ticks = { client.messages.filter { $0.member == "Tick" } }
    #expect(await until { ticks().count == 1000 })
    #expect(ticks().map { $0.body.first?.int } == (0..<1000).map { $0 })
  }

  @Test func `when the bus dies, every call fails and no descriptor is leaked`() async throws {
    let before = openEventDescriptors()
    do {
      let bus = try PrivateBus()
      let (client, server, name) = try await pair(bus)
      let results = Mutex([Result<DBusMessage, DBusError>]())
      let all = Results(results: results)
      for _ in 0..<10 {
        client.connection.call(.call(name, "/", "org.example", "Silence")) { result in all.results.withLock { $0.append(result) } }
      }
      #expect(await until { server.messages.count { $0.kind == .call } == 10 })
      bus.end()
      #expect(await until { all.results.withLock { $0.count } == 10 })
      #expect(await until { client.ended != nil && server.ended != nil })
      let late = await client.call(.call(name, "/", "org.example", "Echo"))
      guard case .failure(.disconnected) = late else { return #expect(Bool(false), "\(late)") }
    }
    members.keep([])
    #expect(await until { openEventDescriptors() <= before })
  }

  private final class Results: Sendable {
    let results: Mutex<[Result<DBusMessage, DBusError>]>
    init(results: consuming Mutex<[Result<DBusMessage, DBusError>]>) { self.results = results }
  }

  @Test(arguments: ["unix:path=/nonexistent/bus", "nonsense", "", "tcp:host=127.0.0.1,port=1"])
  func `a missing bus ends the connection with a reason`(_ address: String) async throws {
    let member = Member(address)
    #expect(await until { member.ended != nil })
    #expect(member.ended?.isEmpty == false)
  }

  @Test func `a peer that is not a message bus ends the connection`() async throws {
    // A peer that accepts the connection and sends random bytes.
    let path = "/tmp/vehicled-bus-\(UUID().uuidString.prefix(8))"
    defer { unlink(path) }
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
    try #require(bound == 0 && listen(listener, 1) == 0)
    let member = Member("unix:path=\(path)")
    let peer = accept(listener, nil, nil)
    _ = fcntl(peer, F_SETFD, FD_CLOEXEC)
    let noise = (0..<4096).map { _ in UInt8.random(in: 0...255) }
    send(peer, noise, noise.count, Int32(MSG_NOSIGNAL))
    close(peer)
    close(listener)
    #expect(await until { member.ended != nil })
  }

  @Test func `an idle connection thread sleeps`() async throws {
    let bus = try PrivateBus()
    _ = try await pair(bus)
    func switches() -> [String] {
      let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
      return threads.sorted().compactMap { thread in
        let name = try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8)
        guard name == "bus\n" else { return nil }
        let status = try? String(contentsOfFile: "/proc/self/task/\(thread)/status", encoding: .utf8)
        return status?.split(separator: "\n").first { $0.hasPrefix("voluntary") }.map { "\(thread) \($0)" }
      }
    }
    // Threads of other tests may still be finishing their work.
    var isIdle = false
    for _ in 0..<10 where !isIdle {
      try await Task.sleep(for: .milliseconds(300))
      let before = switches()
      #expect(before.count >= 2)
      try await Task.sleep(for: .milliseconds(1500))
      isIdle = switches() == before
    }
    #expect(isIdle)
  }
}
