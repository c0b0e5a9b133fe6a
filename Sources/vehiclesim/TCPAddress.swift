// Addresses of remote hosts and non-blocking connections to them. Host names are resolved once, when the program starts.

import CLinux
import Glibc

struct TCPAddress {
  private let family: Int32
  private let bytes: [UInt8]

  /// Resolves a host name. Blocks.
  static func resolve(host: String, port: UInt16) throws -> [TCPAddress] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &list)
    guard code == 0 else { throw SimulatorError("cannot resolve host \(host): \(String(cString: gai_strerror(code)))") }
    defer { freeaddrinfo(list) }
    var all: [TCPAddress] = []
    var next = list
    while let entry = next?.pointee {
      let bytes = Array(UnsafeRawBufferPointer(start: entry.ai_addr, count: Int(entry.ai_addrlen)))
      all.append(TCPAddress(family: entry.ai_family, bytes: bytes))
      next = entry.ai_next
    }
    return all
  }

  /// Starts to connect, and returns the socket. Returns nil and sets errno on failure. The socket becomes writable when
  /// it is connected or has failed.
  func startConnecting() -> Int32? {
    let file = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard file >= 0 else { return nil }
    var one: Int32 = 1
    setsockopt(file, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    let result = bytes.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: sockaddr.self) { connect(file, $0.baseAddress, socklen_t(raw.count)) }
    }
    if result == 0 || errno == EINPROGRESS { return file }
    let code = errno
    close(file)
    errno = code
    return nil
  }

  /// The errno of a completed connection attempt; 0 if the socket is connected.
  static func connectError(of file: Int32) -> Int32 {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(file, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
  }

  /// Closes a connection with a TCP reset.
  static func reset(_ file: Int32) {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(file, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close(file)
  }
}
