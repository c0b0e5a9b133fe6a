// The TCP end: a listening socket that gives every client a machine of its own. It must never stop listening because
// clients are many: without free descriptors it pauses.

import CLinux
import Glibc
import Protocols

final class Listener: Watched {
  private(set) var url = ""
  private var file: Int32 = -1
  private let loop: Loop
  private let manner: Manner
  private let machine: () -> any Machine
  private var count = 0

  /// Listens there, or says why it cannot. `machine` makes the machine of the next client.
  init(host: String, port: UInt16, loop: Loop, manner: Manner, machine: @escaping () -> any Machine) throws {
    self.loop = loop
    self.manner = manner
    self.machine = machine
    super.init()
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      limit.rlim_cur = limit.rlim_max
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &found)
    guard code == 0, let first = found else { throw Failure("cannot find host \(host): \(String(cString: gai_strerror(code)))") }
    defer { freeaddrinfo(first) }
    file = try Listener.open(first.pointee, host: host, port: port)
    url = Endpoint.url(host: host, port: port == 0 ? Listener.port(of: file) : port)
    loop.add(self)
  }

  override var descriptor: Int32 { file }
  override var interest: Int16 { Int16(wake == nil ? POLLIN : 0) }
  override func woken(at now: Instant) { wake = nil }

  override func ready(_ events: Int16, at now: Instant) {
    while true {
      let client = accept(file, nil, nil)
      if client < 0 {
        if errno == EINTR || errno == ECONNABORTED { continue }
        if errno != EAGAIN { wake = now + 100 * .millisecond }
        return
      }
      _ = fcntl(client, F_SETFL, O_NONBLOCK)
      _ = fcntl(client, F_SETFD, FD_CLOEXEC)
      Listener.set(Int(IPPROTO_TCP), TCP_NODELAY, on: client)
      count += 1
      loop.add(Connection(client, machine: machine(), name: "client \(count)", manner: manner))
    }
  }

  private static func open(_ address: addrinfo, host: String, port: UInt16) throws -> Int32 {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let file = socket(address.ai_family, type, 0)
    guard file >= 0 else { throw Failure("cannot make a socket", errno: errno) }
    set(Int(SOL_SOCKET), SO_REUSEADDR, on: file)
    if bind(file, address.ai_addr, address.ai_addrlen) == 0, listen(file, 4096) == 0 { return file }
    let code = errno
    Glibc.close(file)
    if code == EADDRINUSE { throw Failure("port \(port) on \(host) is taken: choose another one, or 0 for any free one") }
    throw Failure("cannot listen on \(Endpoint.url(host: host, port: port))", errno: code)
  }

  private static func set(_ level: Int, _ option: Int32, on file: Int32) {
    var one: Int32 = 1
    setsockopt(file, Int32(level), option, &one, socklen_t(MemoryLayout<Int32>.size))
  }

  private static func port(of file: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
        // The port stands at the same place in both address families.
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(file, $0, &length) }
        return UInt16(bigEndian: address.pointee.sin6_port)
      }
    }
  }
}
