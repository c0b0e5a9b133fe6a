// A scripted HTTP server: it listens on the loopback, reads up to an empty line, and hands the connection to the test.

import CLinux
import Glibc
import Synchronization

@testable import vehicled

final class HTTPPeer: Sendable {
  let port: Int
  private let listener: CInt
  private let received: Received

  private final class Received: Sendable { let requests = Mutex<[String]>([]) }

  /// Serves every connection on its own thread, and closes it when `serve` returns.
  init(_ serve: @escaping @Sendable (_ connection: CInt, _ request: String) -> Void) {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.listener = listener
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = bind(listener, $0, size)
        _ = listen(listener, 128)
        _ = getsockname(listener, $0, &size)
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    let received = Received()
    self.received = received
    detach {
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else { break }
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        detach {
          let request = Self.head(connection)
          received.requests.withLock { $0.append(request) }
          serve(connection, request)
          close(connection)
        }
      }
      close(listener)
    }
  }

  deinit { shutdown(listener, CInt(SHUT_RDWR)) }

  /// Sends this response to every request.
  convenience init(_ answer: String) { self.init { connection, _ in Self.send(connection, answer) } }

  /// A response with this body.
  static func answer(_ body: String, type: String = "application/json") -> String {
    "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  var url: String { "http://127.0.0.1:\(port)" }
  var requests: [String] { received.requests.withLock { $0 } }

  @discardableResult static func send(_ connection: CInt, _ text: String) -> Bool {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(connection, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Reads until the client closes the connection.
  static func waitForTheEnd(_ connection: CInt) {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while read(connection, &bytes, bytes.count) > 0 {}
  }

  private static func head(_ connection: CInt) -> String {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while !String(decoding: bytes, as: UTF8.self).contains("\r\n\r\n") {
      let count = read(connection, &chunk, chunk.count)
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

private func detach(_ body: @escaping @Sendable () -> Void) {
  final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let start: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { box in
    box.map { Unmanaged<Box>.fromOpaque($0).takeRetainedValue() }?.body()
    return nil
  }
  pthread_create(&thread, nil, start, Unmanaged.passRetained(Box(body)).toOpaque())
  pthread_detach(thread)
}
