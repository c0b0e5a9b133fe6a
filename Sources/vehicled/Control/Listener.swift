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
  /// The file to remove at the end; nil for a socket that belongs to systemd.
  private let path: String?

  private init(channel: any Channel, path: String?) {
    self.channel = channel
    self.path = path
  }

  /// Begins to serve; says who holds the socket when it is taken.
  static func start(path: String, serve: @escaping @Loop (any Channel) throws -> Void) async throws(ValueError) -> Listener {
    let bootstrap = ServerBootstrap(group: Loop.group)
      .serverChannelOption(.backlog, value: 128)
      .childChannelOption(.writeBufferWaterMark, value: .init(low: 1 << 12, high: Session.mostUnread))
      .childChannelOption(.recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 512, maximum: 1 << 16))
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try serve(channel) } }
      }
    do {
      let handed = sd_listen_fds(1)
      if handed > 1 { throw ValueError("systemd hands over \(handed) sockets: vehicled.socket must have one") }
      if handed == 1 {
        return Listener(channel: try await bootstrap.withBoundSocket(SD_LISTEN_FDS_START).get(), path: nil)
      }
      try reclaim(path)
      let channel = try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: false).get()
      share(path)
      return Listener(channel: channel, path: path)
    } catch let error as ValueError {
      throw error
    } catch {
      throw ValueError("cannot listen at \(path): \(plainWords(error))")
    }
  }

  func close() async {
    try? await channel.close().get()
    if let path { unlink(path) }
  }

  /// Removes a socket that nobody serves.
  private static func reclaim(_ path: String) throws(ValueError) {
    var address = sockaddr_un()
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw ValueError("the socket path \(path) is too long: 107 bytes is the most")
    }
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else {
      throw ValueError("\(path) is in the way and no socket: remove it, or choose another --socket")
    }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { Glibc.close(probe) }
    let answered = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(probe, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
    if answered == 0 {
      let holder = Peer(socket: probe).map { " (process \($0.pid))" } ?? ""
      throw ValueError("another vehicled\(holder) serves \(path): stop it first, or choose another --socket")
    }
    guard errno == ECONNREFUSED else { throw ValueError("\(path) is in the way: \(systemWords(errno))") }
    unlink(path)
  }

  /// Lets the group `vehicled` connect, where there is one.
  private static func share(_ path: String) {
    chmod(path, 0o660)
    if let group = getgrnam("vehicled") { _ = chown(path, uid_t.max, group.pointee.gr_gid) }
  }
}
