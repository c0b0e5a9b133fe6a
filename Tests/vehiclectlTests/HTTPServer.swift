// A mock camera: listens on the loopback, reads a request and sends fixed bytes.

import CLinux
import Glibc
import Synchronization

@testable import vehiclectl

final class HTTPServer: Sendable {
  let port: UInt16
  private let listener: Int32
  private let heard = Mutex("")

  /// Replies to every request with these bytes, then closes, or waits until the client does.
  init(_ answer: [UInt8], closes: Bool = true) throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.listener = listener
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && listen(listener, 5) == 0 && getsockname(listener, $0, &size) == 0
      }
    }
    guard isListening else { throw Failure.other("the test cannot listen") }
    port = UInt16(bigEndian: address.sin_port)
    let thread = ServerThread { [weak self] in
      while true {
        let connection = accept(listener, nil, nil)
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        guard connection >= 0 else { break }
        let request = Self.request(connection)
        self?.heard.withLock { $0 = request }
        SocketServer.send(connection, answer)
        if !closes { _ = Self.request(connection) }
        close(connection)
      }
      close(listener)
    }
    try thread.start()
  }

  var request: String { heard.withLock { $0 } }

  func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

  /// The request up to an empty line or the end.
  private static func request(_ connection: Int32) -> String {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      let count = read(connection, &chunk, chunk.count)
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
