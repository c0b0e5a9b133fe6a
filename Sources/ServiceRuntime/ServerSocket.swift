// The listening socket of a server: passed by systemd, or created here. If no descriptor is free, accepting pauses for one second,
// because a waiting client would otherwise wake the loop endlessly. Source: sd_listen_fds(3).

import CLinux
import CSystemd
import Glibc
import Logging
import Protocols

final class ServerSocket: EventSource {
  private static let failurePause: Nanoseconds = .second
  private static let minLogInterval: Nanoseconds = 60 * .second
  /// The maximum time for accepting connections in one turn. The queue must empty faster than clients that connect in a loop can fill it.
  private static let turnSlice: Nanoseconds = 500 * .microsecond

  var accepted: (CInt) -> Void = { _ in }
  private let socket: CInt
  /// The file to remove at the end, and its inode; nil for a socket from systemd.
  private let file: (path: String, inode: ino_t?)?
  private let logger: Logger
  private var lastLogged: Instant?

  init(path: String, mode: mode_t, program: String, logger: Logger) throws(ValueError) {
    self.logger = logger
    let passed = sd_listen_fds(1)
    guard passed <= 1 else { throw ValueError("systemd passed \(passed) sockets, expected 1: check \(program).socket") }
    if passed == 1 {
      try Self.prepare(passed: SD_LISTEN_FDS_START, program: program)
      socket = SD_LISTEN_FDS_START
      file = nil
    } else {
      socket = try UnixSocket.listen(at: path, mode: mode, program: program, option: "--socket")
      file = (path, Self.inode(path))
    }
  }

  /// Checks and sets up a descriptor from systemd, which passes it in blocking mode and with a queue of thousands of clients.
  static func prepare(passed descriptor: CInt, program: String) throws(ValueError) {
    guard sd_is_socket_unix(descriptor, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0 else {
      throw ValueError("systemd passed a descriptor that is not a listening Unix stream socket: check \(program).socket")
    }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    listen(descriptor, UnixSocket.backlog)
  }

  override var descriptor: Int32 { wake == nil ? socket : -1 }
  override var interest: Int16 { Int16(POLLIN) }
  override func timerFired(at now: Instant) { wake = nil }

  override func ready(_ events: Int16, at now: Instant) {
    let end = SystemClock.monotonic + Self.turnSlice
    repeat {
      guard let client = UnixSocket.accept(socket) else {
        if errno != EAGAIN { pause(errno, at: now) }
        return
      }
      accepted(client)
    } while !isClosed && SystemClock.monotonic < end
  }

  private func pause(_ code: CInt, at now: Instant) {
    wake = now + Self.failurePause
    guard lastLogged.map({ now - $0 > Self.minLogInterval }) ?? true else { return }
    lastLogged = now
    logger.error("cannot accept a connection: \(errnoMessage(code)); close some clients, or raise LimitNOFILE= of the unit")
  }

  /// Stops listening. Connections that wait at a socket from systemd are left for the next process.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    // Another process may have replaced the file. The inode number of our socket is not reused while the socket is bound.
    if let file, file.inode == Self.inode(file.path) { unlink(file.path) }
    Glibc.close(socket)
  }

  private static func inode(_ path: String) -> ino_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_ino : nil
  }
}
