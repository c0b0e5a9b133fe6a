// Sends datagrams to journald and systemd without libsystemd, whose calls block: if journald or systemd did not read its socket, the whole
// program would stop.

import CLinux
import Glibc

/// A socket that sends datagrams to Unix sockets.
struct DatagramSocket: Sendable {
  private let descriptor: CInt

  /// Creates a socket. `timeout` is the maximum time that a send waits for room, in microseconds. If it is 0, a send never waits.
  init(timeout: Int = 0) {
    let flags = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | (timeout == 0 ? Int32(SOCK_NONBLOCK.rawValue) : 0)
    descriptor = socket(AF_UNIX, flags, 0)
    var limit = timeval(tv_sec: 0, tv_usec: timeout)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var size: CInt = 8 << 20
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<CInt>.size))
  }

  func close() { Glibc.close(descriptor) }

  /// Sends the text to the socket at this path, or with this abstract name if it begins with `@`. Returns 0 or the error code: EAGAIN if
  /// there is no room, EMSGSIZE if the text is too long.
  func send(_ text: String, to path: String) -> CInt {
    var address = sockaddr_un()
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return ENAMETOOLONG }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) {
      $0.copyBytes(from: path.utf8)
      if path.utf8.first == UInt8(ascii: "@") { $0[0] = 0 }
    }
    // The length excludes the zeros after the name, which would be part of an abstract name.
    let length = socklen_t(MemoryLayout<sa_family_t>.size + path.utf8.count)
    let bytes = Array(text.utf8)
    let count = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length) }
    }
    return count < 0 ? errno : 0
  }
}
