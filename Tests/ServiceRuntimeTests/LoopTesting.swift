// What the tests of this target share: waiting on a loop, a raw peer of a Unix socket, and directories for sockets.

import CLinux
import Foundation
import Protocols
import Testing
import Varlink

@testable import ServiceRuntime

extension EventLoop {
  /// Runs until the condition holds, for at most 90 s. Returns whether it holds.
  func run(until condition: @escaping () -> Bool) throws -> Bool {
    let check = ConditionCheck(condition) { [weak self] in self?.stop() }
    add(check)
    defer { check.isClosed = true }
    try run()
    return condition()
  }
}

private final class ConditionCheck: EventSource {
  private let condition: () -> Bool
  private let stop: () -> Void
  private let deadline = SystemClock.monotonic + 90 * .second

  init(_ condition: @escaping () -> Bool, stop: @escaping () -> Void) {
    (self.condition, self.stop) = (condition, stop)
    super.init()
    wake = SystemClock.monotonic
  }

  override func timerFired(at now: Instant) {
    wake = now + 2 * .millisecond
    if condition() || now > deadline { stop() }
  }
}

/// A directory that is removed at the end of the test.
final class Directory {
  let path = "/tmp/vehicled-runtime-\(UUID().uuidString.prefix(8))"

  init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: path) }

  var socket: String { path + "/socket" }
}

/// One end of a connection that sends and receives bytes as a test requests.
final class RawPeer: EventSource {
  let socket: CInt
  private(set) var messages: [String] = []
  private(set) var hasEnded = false
  var isReading = true
  private var framing = VarlinkFraming(limit: VarlinkFraming.replyLimit)
  private var unsent: ArraySlice<UInt8> = []

  init(_ socket: CInt, loop: EventLoop) {
    self.socket = socket
    super.init()
    loop.add(self)
  }

  convenience init(to path: String, loop: EventLoop) throws {
    self.init(try UnixSocket.connect(to: path), loop: loop)
  }

  override var descriptor: Int32 { interest == 0 ? -1 : socket }
  override var interest: Int16 { (isReading && !hasEnded ? Int16(POLLIN) : 0) | (unsent.isEmpty ? 0 : Int16(POLLOUT)) }

  override func ready(_ events: Int16, at now: Instant) {
    if !unsent.isEmpty { flush() }
    guard isReading, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 else { return }
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count = recv(socket, &chunk, chunk.count, 0)
    if count > 0 { framing.append(chunk.prefix(count)) } else if count == 0 || errno != EAGAIN { hasEnded = true }
    while let message = try? framing.next() as [UInt8]? { messages.append(String(decoding: message, as: UTF8.self)) }
  }

  /// Sends messages, each with its NUL.
  func send(_ messages: String...) { send(bytes: messages.flatMap { Array($0.utf8) + [0] }) }

  func send(bytes: [UInt8]) {
    unsent += bytes
    flush()
  }

  private func flush() {
    let count = unsent.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    if count > 0 { unsent = unsent.dropFirst(count) } else if count < 0, errno != EAGAIN { unsent = [] }
  }

  var hasSentAll: Bool { unsent.isEmpty }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    Glibc.close(socket)
  }
}

/// A server of raw connections, in place of the daemon.
final class MockDaemon: EventSource {
  private let socket: CInt
  private let path: String
  private let loop: EventLoop
  private(set) var clients: [RawPeer] = []

  init(at path: String, loop: EventLoop) throws {
    (self.path, self.loop) = (path, loop)
    socket = try UnixSocket.listen(at: path, mode: 0o600, program: "mock", option: "path")
    super.init()
    loop.add(self)
  }

  override var descriptor: Int32 { socket }
  override var interest: Int16 { Int16(POLLIN) }
  override func ready(_ events: Int16, at now: Instant) {
    if let client = UnixSocket.accept(socket) { clients.append(RawPeer(client, loop: loop)) }
  }

  func close() {
    guard !isClosed else { return }
    isClosed = true
    Glibc.close(socket)
    unlink(path)
    clients.forEach { $0.close() }
  }
}

/// A datagram socket in place of journald or systemd.
final class Receiver {
  private let socket: CInt

  /// `@` stands for the first byte of an abstract name.
  init(at path: String) throws {
    socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) {
      $0.copyBytes(from: path.utf8)
      if path.hasPrefix("@") { $0[0] = 0 }
    }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, socklen_t(2 + path.utf8.count)) }
    }
    try #require(bound == 0)
  }

  /// The next datagram, if there is one.
  func next() -> String? {
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = recv(socket, &bytes, bytes.count, 0)
    return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
  }

  func close() { Glibc.close(socket) }
}
