// Listening TCP sockets and their clients.

import CLinux
import Glibc

enum TCPPort {
  /// Listens with this backlog, in clients. Port 0 selects a free port.
  static func listen(host: String, port: UInt16, backlog: Int32) throws -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &list)
    guard code == 0, let first = list else { throw SimulatorError("cannot resolve host \(host): \(String(cString: gai_strerror(code)))") }
    defer { freeaddrinfo(first) }
    return try open(first.pointee, host: host, port: port, backlog: backlog)
  }

  /// Accepts the next client. Returns nil and sets errno on failure: EAGAIN if there is none.
  static func accept(_ file: Int32) -> Int32? {
    while true {
      let client = Glibc.accept(file, nil, nil)
      if client < 0 {
        if errno == EINTR || errno == ECONNABORTED { continue }
        return nil
      }
      _ = fcntl(client, F_SETFL, O_NONBLOCK)
      _ = fcntl(client, F_SETFD, FD_CLOEXEC)
      enable(Int(IPPROTO_TCP), TCP_NODELAY, on: client)
      return client
    }
  }

  /// The port that a socket listens on.
  static func port(of file: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
        // sin_port and sin6_port have the same offset.
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(file, $0, &length) }
        return UInt16(bigEndian: address.pointee.sin6_port)
      }
    }
  }

  private static func open(_ address: addrinfo, host: String, port: UInt16, backlog: Int32) throws -> Int32 {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let file = socket(address.ai_family, type, 0)
    guard file >= 0 else { throw SimulatorError("cannot create a socket", errno: errno) }
    enable(Int(SOL_SOCKET), SO_REUSEADDR, on: file)
    if bind(file, address.ai_addr, address.ai_addrlen) == 0, Glibc.listen(file, backlog) == 0 { return file }
    let code = errno
    close(file)
    if code == EADDRINUSE { throw SimulatorError("port \(port) on \(host) is in use: choose another port, or 0 for any free port") }
    throw SimulatorError("cannot listen on \(Endpoint.url(host: host, port: port))", errno: code)
  }

  private static func enable(_ level: Int, _ option: Int32, on file: Int32) {
    var one: Int32 = 1
    setsockopt(file, Int32(level), option, &one, socklen_t(MemoryLayout<Int32>.size))
  }
}
