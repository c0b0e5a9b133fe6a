// The control socket: passed by systemd, or bound here. A socket file that refuses connections is left over from a dead
// process and is replaced; one that accepts them means that another vehicled is running.

import CLinux
import CSystemd
import Glibc
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime

@Loop final class Listener {
  private let channel: any Channel
  /// The file to remove at the end, and its inode; nil for a socket from systemd.
  private let file: (path: String, inode: ino_t?)?
  private let path: String

  private init(channel: any Channel, path: String, isBoundHere: Bool) {
    self.channel = channel
    self.path = path
    file = isBoundHere ? (path, Self.inode(path)) : nil
  }

  /// Starts to serve with these methods. `peer` returns the credentials of a client. If another process serves the socket, the error names
  /// that process.
  static func start(
    path: String, _ methods: Methods, peer: @escaping @Loop (CInt) -> Peer? = { Peer(socket: $0) }
  ) async throws(ValueError) -> Listener {
    let bootstrap = ServerBootstrap(group: Loop.group)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandlers([AcceptPause(), Acceptor(methods, peer)]) }
        }
      }
      .serverChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.writeBufferWaterMark, value: Session.waterMark)
    do {
      let passed = sd_listen_fds(1)
      if passed > 1 { throw ValueError("systemd passed \(passed) sockets, expected 1: check vehicled.socket") }
      if passed == 1 {
        // The queue of a socket from systemd has room for thousands of clients.
        listen(SD_LISTEN_FDS_START, UnixSocket.backlog)
        return Listener(channel: try await bootstrap.withBoundSocket(SD_LISTEN_FDS_START).get(), path: path, isBoundHere: false)
      }
      // Bound here because NIO would unlink the path at the end, even if it is another daemon's socket by then.
      let descriptor = try UnixSocket.listen(at: path, mode: 0o666, program: "vehicled", option: "--socket")
      let channel = try await bootstrap.withBoundSocket(descriptor).get()
      return Listener(channel: channel, path: path, isBoundHere: true)
    } catch let error as ValueError {
      throw error
    } catch {
      throw ValueError("cannot listen on \(path): \(errorMessage(error))")
    }
  }

  /// Stops accepting. Pending connections to a socket from systemd are left for the next daemon; those to our own socket are
  /// accepted first.
  func close() async {
    // Another daemon may have replaced the file. The inode number of our socket is not reused while the socket is bound.
    if let file {
      if file.inode == Self.inode(file.path) { unlink(file.path) }
      for _ in 0..<UnixSocket.backlog where hasPendingConnection { await Timer.pause(0) }
    }
    try? await channel.close().get()
  }

  /// Whether a connection waits to be accepted.
  private var hasPendingConnection: Bool {
    let socket = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    var entry = pollfd(fd: (socket ?? nil) ?? -1, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }

  private static func inode(_ path: String) -> ino_t? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_ino : nil
  }
}
