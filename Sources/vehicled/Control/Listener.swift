// The control socket: handed over by systemd, or bound here. A socket file that nobody answers is left over from a
// process that died and is replaced; one that is answered means that another vehicled is at work.

import CLinux
import CSystemd
import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class Listener {
  private let channel: any Channel
  /// The file to remove at the end, and its inode; nil for a socket that belongs to systemd.
  private let file: (path: String, inode: ino_t?)?
  private let path: String

  private init(channel: any Channel, path: String, isOurs: Bool) {
    self.channel = channel
    self.path = path
    file = isOurs ? (path, Self.inode(path)) : nil
  }

  /// Begins to serve; says who holds the socket when it is taken.
  static func start(path: String, serve: @escaping @Loop (any Channel) throws -> Void) async throws(ValueError) -> Listener {
    let bootstrap = ServerBootstrap(group: Loop.group)
      .serverChannelOption(.backlog, value: 128)
      .serverChannelInitializer(AcceptPause.add)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.writeBufferWaterMark, value: .init(low: 1 << 12, high: Session.maxUnread))
      // Who connects again and again does not fill a turn.
      .serverChannelOption(.maxMessagesPerRead, value: 4)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try serve(channel) } }
      }
    do {
      let handed = sd_listen_fds(1)
      if handed > 1 { throw ValueError("systemd hands over \(handed) sockets: vehicled.socket must have one") }
      if handed == 1 {
        return Listener(channel: try await bootstrap.withBoundSocket(SD_LISTEN_FDS_START).get(), path: path, isOurs: false)
      }
      let place = try hold(path)
      defer { Glibc.close(place) }
      try reclaim(path)
      // Bound here, for the event loop would remove whatever file has the name at the end.
      let descriptor = newSocket()
      guard reach(path, with: descriptor, by: bind) == 0 else {
        let reason = errno
        Glibc.close(descriptor)
        throw ValueError("cannot listen at \(path): \(systemWords(reason))")
      }
      let channel = try await bootstrap.withBoundSocket(descriptor).get()
      let listener = Listener(channel: channel, path: path, isOurs: true)
      listener.share(withEverybody: false)
      return listener
    } catch let error as ValueError {
      throw error
    } catch {
      throw ValueError("cannot listen at \(path): \(plainWords(error))")
    }
  }

  /// Accepts no more. Who has reached a socket of systemd's and was not accepted is served by the next daemon; who has reached ours
  /// is served before.
  func close() async {
    // Somebody may have removed the file and another daemon made its own. While ours is bound its inode is no other's.
    if let file {
      if file.inode == Self.inode(file.path) { unlink(file.path) }
      for _ in 0..<128 where isReached { await Timer.pause(0) }
    }
    try? await channel.close().get()
  }

  /// Somebody waits to be accepted.
  private var isReached: Bool {
    let socket = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    var entry = pollfd(fd: (socket ?? nil) ?? -1, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }

  private static func inode(_ path: String) -> ino_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_ino : nil
  }

  /// Locks the socket's directory until the descriptor is closed: of two daemons that start at once, each would take the
  /// other's new socket for one that was left over.
  private static func hold(_ path: String) throws(ValueError) -> CInt {
    let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ValueError("cannot listen at \(path): \(directory): \(systemWords(errno))") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
      Glibc.close(descriptor)
      throw ValueError("another program is just taking \(path): try again")
    }
    return descriptor
  }

  /// Removes a socket that nobody serves.
  private static func reclaim(_ path: String) throws(ValueError) {
    guard path.utf8.count < MemoryLayout<sockaddr_un>.size - MemoryLayout<sa_family_t>.size else {
      throw ValueError("the socket path \(path) is too long: 107 bytes is the most")
    }
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else {
      throw ValueError("\(path) is in the way and no socket: remove it, or choose another --socket")
    }
    let probe = newSocket()
    defer { Glibc.close(probe) }
    // EAGAIN: somebody listens, and does not accept.
    if reach(path, with: probe, by: connect) == 0 || errno == EAGAIN {
      let holder = Peer(socket: probe).map { $0.pid > 0 ? " (process \($0.pid))" : "" } ?? ""
      throw ValueError("another vehicled\(holder) serves \(path): stop it first, or choose another --socket")
    }
    guard errno == ECONNREFUSED else { throw ValueError("\(path) is in the way: \(systemWords(errno))") }
    unlink(path)
  }

  private static func newSocket() -> CInt {
    socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
  }

  /// Binds or connects a socket; 0, or -1 and errno.
  private static func reach(
    _ path: String, with descriptor: CInt, by call: (CInt, UnsafePointer<sockaddr>, socklen_t) -> CInt
  ) -> CInt {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }

  /// Lets the socket's group connect; or everybody, where the access rules name others: each call is checked anyway. False where it
  /// does not, because the socket is systemd's.
  @discardableResult func share(withEverybody: Bool) -> Bool {
    guard let file else {
      var status = stat()
      return !withEverybody || stat(path, &status) != 0 || status.st_mode & S_IWOTH != 0
    }
    chmod(file.path, withEverybody ? 0o666 : 0o660)
    return true
  }

  /// Makes this the socket's group, unless the socket is systemd's.
  func share(withGroup group: UInt32) {
    if let file { _ = chown(file.path, uid_t.max, group) }
  }
}
