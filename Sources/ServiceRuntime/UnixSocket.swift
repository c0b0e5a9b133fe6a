// Unix stream sockets: connecting to a path, and listening at one. A socket file that refuses connections is left over from a dead process
// and is replaced; one that accepts them means that another process serves it.

import CLinux
import Glibc
import Protocols

public enum UnixSocket {
  /// Connects a non-blocking socket. EAGAIN means that the server's queue is full.
  public static func connect(to path: String) throws(ValueError) -> CInt {
    try checkLength(path)
    let descriptor = try newSocket()
    guard callWithAddress(path, with: descriptor, by: Glibc.connect) != 0 else { return descriptor }
    let reason = errno
    close(descriptor)
    switch reason {
    case ENOENT, ECONNREFUSED: throw ValueError("no process is listening on \(path)")
    case EAGAIN: throw ValueError("cannot connect to \(path): too many clients are waiting")
    default: throw ValueError("cannot connect to \(path): \(errnoMessage(reason))")
    }
  }

  /// The length of the queue of clients that have not been accepted yet. Clients that connect in a loop can fill a queue of any length
  /// if they get more CPU time than the server; other clients then wait behind the whole queue.
  public static let backlog: CInt = 128

  /// Listens on a non-blocking socket at this path, with this file mode. Replaces the file of a dead process. The errors name the process
  /// that already serves the path, and the option that selects another path.
  public static func listen(at path: String, mode: mode_t, program: String, option: String) throws(ValueError) -> CInt {
    try checkLength(path)
    return try locked(path, program: program) { () throws(ValueError) in
      try removeStale(path, program: program, option: option)
      let descriptor = try newSocket()
      guard callWithAddress(path, with: descriptor, by: bind) == 0, chmod(path, mode) == 0, Glibc.listen(descriptor, backlog) == 0 else {
        let reason = errno
        close(descriptor)
        throw ValueError("cannot listen on \(path): \(errnoMessage(reason))")
      }
      return descriptor
    }
  }

  /// Accepts the next client, on a non-blocking socket. Returns nil and sets errno on failure: EAGAIN if there is none.
  public static func accept(_ socket: CInt) -> CInt? {
    while true {
      let client = Glibc.accept(socket, nil, nil)
      if client < 0, errno == EINTR || errno == ECONNABORTED { continue }
      guard client >= 0 else { return nil }
      _ = fcntl(client, F_SETFL, O_NONBLOCK)
      _ = fcntl(client, F_SETFD, FD_CLOEXEC)
      return client
    }
  }

  /// Closes the connections that wait at a listening socket, which becomes non-blocking.
  static func refuseWaitingClients(_ socket: CInt) {
    _ = fcntl(socket, F_SETFL, O_NONBLOCK)
    while let client = accept(socket) { close(client) }
  }

  /// Locks the path while `body` runs: two processes that start at the same time could each mistake the other's new
  /// socket for a stale one.
  private static func locked(_ path: String, program: String, _ body: () throws(ValueError) -> CInt) throws(ValueError) -> CInt {
    let file = path + ".lock"
    let lock: CInt?
    do throws(FileError) { lock = try Files.lock(file) } catch {
      throw ValueError("cannot listen on \(path): \(file): \(errnoMessage(error.code))")
    }
    guard let lock else { throw ValueError("\(path) is locked: another \(program) is starting; try again") }
    defer {
      unlink(file)
      close(lock)
    }
    return try body()
  }

  private static func removeStale(_ path: String, program: String, option: String) throws(ValueError) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else {
      throw ValueError("\(path) exists and is not a socket: remove it, or choose another \(option)")
    }
    let probe = try newSocket()
    defer { close(probe) }
    // EAGAIN: a process listens, but its queue is full.
    if callWithAddress(path, with: probe, by: Glibc.connect) == 0 || errno == EAGAIN {
      let holder = Peer(socket: probe).map { $0.pid > 0 ? " (pid \($0.pid))" : "" } ?? ""
      throw ValueError("\(path) is in use by another \(program)\(holder): stop it, or choose another \(option)")
    }
    guard errno == ECONNREFUSED else { throw ValueError("cannot replace \(path): \(errnoMessage(errno))") }
    unlink(path)
  }

  private static func checkLength(_ path: String) throws(ValueError) {
    guard path.utf8.count < MemoryLayout<sockaddr_un>.size - MemoryLayout<sa_family_t>.size else {
      throw ValueError("socket path too long: \(path); the maximum is 107 bytes")
    }
  }

  private static func newSocket() throws(ValueError) -> CInt {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw ValueError("cannot create a socket: \(errnoMessage(errno))") }
    return descriptor
  }

  /// Binds or connects a socket. Returns 0, or -1 with errno set.
  private static func callWithAddress(
    _ path: String, with descriptor: CInt, by call: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt
  ) -> CInt {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
