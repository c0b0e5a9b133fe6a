// Shared by tests of the socket: a client of any user, and a device that can be driven.

import CLinux
import Foundation
import Glibc
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime
import Testing

@testable import vehicled

/// A client of the methods, over a socket pair, of any user.
@Loop final class SocketClient {
  private var descriptor: CInt = -1
  private var buffer: [UInt8] = []
  private var pings = 0

  init(_ methods: Methods, user: UInt32 = geteuid()) throws {
    var ends: [CInt] = [0, 0]
    try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    descriptor = ends[0]
    guard let session = methods.session(for: Peer(pid: getpid(), user: user, groups: [])) else {
      close(ends[1])
      return
    }
    _ = ClientBootstrap(group: Loop.group)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(session) }
        }
      }
      .withConnectedSocket(ends[1])
  }

  func disconnect() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  /// Whether the session has closed its end.
  var isClosed: Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, CInt(MSG_PEEK)) == 0
  }

  func halfClose() { shutdown(descriptor, CInt(SHUT_WR)) }

  /// Sends a call. False if the kernel does not accept all of it.
  @discardableResult func send(_ call: String) -> Bool {
    let bytes = Array(call.utf8) + [0]
    return send(bytes[...]) == bytes.count
  }

  /// Sends as much as the kernel accepts and returns the count; negative if it accepts nothing.
  @discardableResult func send(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
  }

  /// The number of complete messages since the last call.
  func messages() -> Int {
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    var count = 0
    while case let size = recv(descriptor, &chunk, chunk.count, 0), size > 0 { count += chunk[..<size].count { $0 == 0 } }
    return count
  }

  /// The next reply.
  func next() async -> String {
    _ = await until {
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = recv(self.descriptor, &chunk, chunk.count, 0)
      if count > 0 { self.buffer += chunk[..<count] }
      return self.buffer.contains(0)
    }
    guard let end = buffer.firstIndex(of: 0) else { return "" }
    defer { buffer.removeSubrange(...end) }
    return String(decoding: buffer[..<end], as: UTF8.self)
  }

  func ask(_ call: String) async -> String {
    send(call)
    return await next()
  }
}

/// A hub with one device that moves, over a pseudo-terminal.
@Loop final class DrivingRig {
  static let schema = Schema(
    properties: [
      Property("target-current", .float, unit: "A", range: -10...10, access: .motion, help: "Motor current"),
      Property("led", .int, access: .write, help: "Light"),
    ], actions: [Action("jump", motion: true, help: "Jumps")])
  let probe = Probe()
  let hub = DeviceHub()
  let methods: Methods
  let device: Device
  let line = pseudoTerminal()

  init(
    _ schema: Schema = DrivingRig.schema, control: Configuration.Control = Configuration.Control(), guardian: Guardian? = nil,
    nameService: NameService = NameService()
  ) async {
    methods = Methods(hub: hub, access: Access(control), blueZ: BlueZ(SystemBus()), directory: "/tmp", nameService: nameService)
    probe.onInput { input, _, effects in
      if case .perform(let id, _) = input { effects.append(.complete(id, .success(Report()))) }
    }
    device = vehicledTests.device(
      probe, named: "board", schema, links: [(.main, .serial(path: line.path, baud: 115200))],
      guardian: guardian)
    hub.add(device)
    device.open(restored: [:])
    _ = await until { self.device.ports.allSatisfy(\.isUp) }
  }

  var leases: [String] { probe.inputTexts.filter { $0.hasPrefix("lease") } }

  func drive(_ client: SocketClient) async -> String {
    let reply = await client.ask(#"{"method":"io.vehicled.Drive","parameters":{"device":"board"},"more":true}"#)
    guard let start = reply.range(of: "\"lease\":\"") else { return reply }
    return String(reply[start.upperBound...].prefix { $0 != "\"" })
  }

  func set(_ value: String, _ lease: String?) -> String {
    let lease = lease.map { ",\"lease\":\"\($0)\"" } ?? ""
    return
      #"{"method":"io.vehicled.Set","parameters":{"device":"board","property":"target-current","value":{"float":\#(value)}\#(lease)}}"#
  }

  func end() {
    device.disconnect()
    close(line.follower)
    close(line.controller)
  }
}
