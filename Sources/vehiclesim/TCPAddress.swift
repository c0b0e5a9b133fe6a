// Where somebody else listens, and the way there. It must never wait: names are looked up once, when the program starts, and a
// connection that is not there yet becomes writable when it is, or has failed.

import CLinux
import Glibc

struct TCPAddress {
  private let family: Int32
  private let bytes: [UInt8]

  /// All addresses of a host, or why there are none. It blocks.
  static func find(host: String, port: UInt16) throws -> [TCPAddress] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &found)
    guard code == 0 else { throw SimulatorError("cannot find host \(host): \(String(cString: gai_strerror(code)))") }
    defer { freeaddrinfo(found) }
    var all: [TCPAddress] = []
    var next = found
    while let one = next?.pointee {
      let bytes = Array(UnsafeRawBufferPointer(start: one.ai_addr, count: Int(one.ai_addrlen)))
      all.append(TCPAddress(family: one.ai_family, bytes: bytes))
      next = one.ai_next
    }
    return all
  }

  /// A socket that is being connected, or nil with errno.
  func dial() -> Int32? {
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

  /// Why a connection that was dialled did not come about; 0: it did.
  static func outcome(of file: Int32) -> Int32 {
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(file, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno
  }

  /// Closes a connection so that the other side gets a reset.
  static func abort(_ file: Int32) {
    var now = linger(l_onoff: 1, l_linger: 0)
    setsockopt(file, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    close(file)
  }
}
