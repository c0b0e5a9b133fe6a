// A mock daemon: listens on its own socket, passes each message to a closure on a thread, and sends the result.

import CLinux
import Glibc
import Protocols
import Varlink

@testable import vehiclectl

/// What the server does after a message.
enum Answer {
  case send([UInt8])
  case sendAndClose([UInt8])
  case nothing
}

final class SocketServer {
  let path: String
  private let listener: Int32

  /// Serves until it is stopped.
  convenience init(_ answer: @escaping @Sendable (_ method: String, JSON) -> Answer) throws {
    try self.init { _, method, parameters in answer(method, parameters) }
  }

  /// Serves each connection on its own thread; the closure gets the descriptor, to send later.
  init(_ answer: @escaping @Sendable (_ connection: Int32, _ method: String, JSON) -> Answer) throws {
    path = "/tmp/vehiclectl-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.listener = listener
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let bound = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
    guard bound == 0, listen(listener, 5) == 0 else { throw Failure.other("the test cannot listen") }
    let thread = ServerThread {
      while true {
        let connection = accept(listener, nil, nil)
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        guard connection >= 0 else { break }
        let server = ServerThread {
          Self.serve(connection, answer)
          close(connection)
        }
        do { try server.start() } catch { close(connection) }
      }
      close(listener)  // only here, when no other thread uses its number for this listener
    }
    try thread.start()
  }

  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    unlink(path)
  }

  private static func serve(_ connection: Int32, _ answer: (Int32, String, JSON) -> Answer) {
    var framing = VarlinkFraming()
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = chunk.withUnsafeMutableBytes { read(connection, $0.baseAddress, $0.count) }
      guard count > 0 else { return }
      framing.append(chunk[..<count])
      while let message = try? framing.next() {
        let call = JSON(String(decoding: message, as: UTF8.self))
        switch answer(connection, call?["method"]?.string ?? "", call?["parameters"] ?? [:]) {
        case .send(let bytes): send(connection, bytes)
        case .sendAndClose(let bytes): return send(connection, bytes)
        case .nothing: break
        }
      }
    }
  }

  static func send(_ connection: Int32, _ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}

/// A thread that runs a closure.
final class ServerThread {
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  func start() throws {
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { raw in
        guard let raw else { return nil }
        Unmanaged<ServerThread>.fromOpaque(raw).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
    guard result == 0 else { throw Failure.other("the test has no thread") }
    pthread_detach(thread)
  }
}
