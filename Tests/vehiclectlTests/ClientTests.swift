// The client against a daemon that works, rejects calls, disconnects, sends garbage or stops replying.

import CLinux
import Glibc
import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ClientTests {
  let reading = Contract.Reading(device: "ev", property: "rpm", value: .int(3737), unit: "rpm", time: 1, age: 0.01)

  func failure(_ body: () throws -> Void) -> Failure? {
    do { try body() } catch { return error as? Failure }
    return nil
  }

  @Test func `a call gets its reply`() throws {
    let reading = reading
    let server = try SocketServer { method, parameters in
      guard method == "io.vehicled.Get", parameters.text == #"{"references":["rpm"]}"# else { return .sendAndClose([]) }
      return .send(VarlinkReply.message(Contract.Get.Result(readings: [reading])))
    }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 5)
    for _ in 0..<3 {
      #expect(try client.call(Contract.Get.self, .init(references: ["rpm"])).readings == [reading])
    }
  }

  @Test func `a large reply is complete`() throws {
    let devices = (0..<1000).map { number in
      Contract.Device(name: "d\(number)", kind: "obd", state: "polling", readings: [Contract.Reading](repeating: reading, count: 20))
    }
    let server = try SocketServer { _, _ in .send(VarlinkReply.message(Contract.Status.Result(devices: devices))) }
    defer { server.stop() }
    #expect(try Client(path: server.path, timeout: 5).call(Contract.Status.self, .init()).devices == devices)
  }

  @Test func `the daemon's errors keep their parameters`() throws {
    let server = try SocketServer { method, _ in
      method == Contract.Status.name
        ? .send(VarlinkReply.message(.noSuchDevice(device: "x")))
        : .send(Array(#"{"error":"io.vehicled.Newer","parameters":{"a":1}}"#.utf8) + [0])
    }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 5)
    #expect(failure { _ = try client.call(Contract.Status.self, .init(device: "x")) } == .rejected(.noSuchDevice(device: "x")))
    #expect(
      failure { _ = try client.call(Contract.Reload.self, .init()) } == .unknown(name: "io.vehicled.Newer", parameters: ["a": .int(1)]))
  }

  @Test func `a stream ends with its last reply`() throws {
    let server = try SocketServer { _, _ in
      let progress = VarlinkReply.message(Contract.Call.Result(Report(progress: 0.5)), continues: true)
      return .send(progress + progress + VarlinkReply.message(Contract.Call.Result(Report(text: "done"))))
    }
    var texts: [String?] = []
    defer { server.stop() }
    try Client(path: server.path, timeout: 5).stream(Contract.Call.self, .init(device: "ev", action: "a"), firstReply: 5, laterReplies: 5) {
      texts.append($0?.text)
      return true
    }
    #expect(texts == [nil, nil, "done"])
  }

  @Test func `a daemon that disconnects during a stream is an error`() throws {
    let server = try SocketServer { _, _ in .sendAndClose(VarlinkReply.message(Contract.Watch.Result(sequence: 0), continues: true)) }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 5)
    var replies = 0
    let gone = failure {
      try client.stream(Contract.Watch.self, .init(), firstReply: 5, laterReplies: 5) { _ in
        replies += 1
        return true
      }
    }
    #expect(replies == 1 && gone == .daemonGone("vehicled closed the connection") && gone?.exitCode == 3)
  }

  @Test func `a connection closed before the first reply means too many clients`() throws {
    let server = try SocketServer { _, _ in .sendAndClose([]) }
    defer { server.stop() }
    let away = failure { _ = try Client(path: server.path, timeout: 5).call(Contract.Reload.self, .init()) }
    #expect(away == .closedWithoutReply && away?.exitCode == 1)
    let watch = failure {
      try Client(path: server.path, timeout: 5).stream(Contract.Watch.self, .init(), firstReply: 5, laterReplies: 5) { _ in true }
    }
    #expect(watch == .closedWithoutReply)
  }

  @Test func `a daemon that disconnects between two calls is an error`() throws {
    let server = try SocketServer { method, _ in
      method == Contract.Reload.name ? .send(VarlinkReply.message(Contract.Reload.Result(changed: []))) : .sendAndClose([])
    }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 5)
    _ = try client.call(Contract.Reload.self, .init())
    #expect(failure { _ = try client.call(Contract.Status.self, .init()) } == .daemonGone("vehicled closed the connection"))
  }

  @Test func `a read-only call is retried once if the connection ends without a reply`() throws {
    let calls = Mutex([String]())
    let server = try SocketServer { method, _ in
      let count = calls.withLock { calls in
        calls.append(method)
        return calls.count { $0 == method }
      }
      guard count > 1 else { return .sendAndClose([]) }
      return .send(VarlinkReply.message(Contract.Status.Result(devices: [])))
    }
    defer { server.stop() }
    #expect(try Client(path: server.path, timeout: 5).call(Contract.Status.self, .init()).devices == [])
    #expect(
      failure {
        _ = try Client(path: server.path, timeout: 5)
          .call(Contract.Set.self, .init(device: "d", property: "p", value: .int(1)))
      } == .closedWithoutReply)
    #expect(calls.withLock { $0 } == [Contract.Status.name, Contract.Status.name, Contract.Set.name])
  }

  @Test func `a stream without heartbeats is an error`() throws {
    let server = try SocketServer { _, _ in .send(VarlinkReply.message(Contract.Watch.Result(sequence: 0), continues: true)) }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 5)
    var ticks = 0
    let dead = failure {
      try client.stream(Contract.Watch.self, .init(), firstReply: 5, tick: 0.05, laterReplies: 0.3) { result in
        if result == nil { ticks += 1 }
        return true
      }
    }
    #expect(ticks >= 2 && dead == .daemonGone("no reply from vehicled for 0.3 s") && dead?.exitCode == 3)
  }

  @Test(arguments: ["x\0", "[]\0", "{\"parameters\":7}\0", "{\"parameters\":{}}\0", "{\"continues\":1}\0"])
  func `an invalid reply is an error`(_ text: String) throws {
    let server = try SocketServer { _, _ in .send(Array(text.utf8)) }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 5)
    let nonsense = failure { _ = try client.call(Contract.Get.self, .init(references: [])) }
    #expect(
      nonsense?.exitCode == 1 && nonsense?.message.hasPrefix("the server is not vehicled: ") == true, "\(String(describing: nonsense))")
  }

  @Test func `a reply that is too long is an error`() throws {
    let server = try SocketServer { _, _ in .send([UInt8](repeating: 32, count: VarlinkFraming.replyLimit + 1)) }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 20)
    #expect(failure { _ = try client.call(Contract.Reload.self, .init()) }?.message.contains("longer than 16 MiB") == true)
  }

  @Test func `no reply is a timeout`() throws {
    let server = try SocketServer { _, _ in .nothing }
    defer { server.stop() }
    let client = try Client(path: server.path, timeout: 0.1)
    let late = failure { _ = try client.call(Contract.Reload.self, .init()) }
    #expect(late == .timeout(seconds: 0.1) && late?.exitCode == 6)
  }

  @Test func `the first reply of a stream has its own timeout`() throws {
    let server = try SocketServer { _, _ in .nothing }
    defer { server.stop() }
    var ticks = 0
    let late = failure {
      try Client(path: server.path, timeout: 5).stream(Contract.Watch.self, .init(), firstReply: 0.3, tick: 0.05, laterReplies: 60) {
        result in
        if result == nil { ticks += 1 }
        return true
      }
    }
    #expect(ticks >= 2 && late == .timeout(seconds: 0.3) && late?.exitCode == 6)
    let raw = failure {
      try Client(path: server.path, timeout: 5).callByName(Contract.Watch.name, [:], more: true, firstReply: 0.1) { _ in }
    }
    #expect(raw == .timeout(seconds: 0.1))
  }

  @Test func `a missing daemon is an error at once`() throws {
    #expect(failure { _ = try Client(path: "/nonexistent/io.vehicled", timeout: 60) } == .notRunning(socket: "/nonexistent/io.vehicled"))
    let stale = "/tmp/vehiclectl-stale-\(getpid())"
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(stale.utf8)) }
    _ = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
    close(listener)  // the path remains without a listener
    #expect(failure { _ = try Client(path: stale, timeout: 60) }?.exitCode == 3)
    unlink(stale)
    for path in ["", String(repeating: "x", count: 108), "a\0b"] {
      #expect(failure { _ = try Client(path: path, timeout: 60) }?.exitCode == 2)
    }
  }
}
