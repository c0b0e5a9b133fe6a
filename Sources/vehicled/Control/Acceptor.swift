// Accepts clients at the control socket. The queue of the kernel must empty faster than clients that connect in a loop can fill it, or
// other clients wait behind them. Connections above a limit are therefore closed at once, before there is a channel or a session for them.

import Glibc
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime

@Loop final class Acceptor: @Loop ChannelInboundHandler {
  typealias InboundIn = any Channel

  /// The maximum time for accepting connections in one turn of the loop.
  private static let turnSlice: Nanoseconds = 500 * .microsecond

  private let methods: Methods
  private let peer: @Loop (CInt) -> Peer?
  private var listener: CInt?

  /// `peer` returns the credentials of the client at a socket.
  init(_ methods: Methods, _ peer: @escaping @Loop (CInt) -> Peer?) { (self.methods, self.peer) = (methods, peer) }

  func channelActive(context: ChannelHandlerContext) {
    listener = try? context.channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    context.fireChannelActive()
  }

  /// Serves the client that NIO has accepted.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let pipeline = unwrapInboundIn(data).pipeline.syncOperations
    let session = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { makeSession(for: $0) }
    guard let session = session ?? nil, (try? pipeline.addHandler(session)) != nil else {
      return unwrapInboundIn(data).close(promise: nil)
    }
    context.fireChannelRead(data)
  }

  /// Accepts the clients that are waiting behind the one that NIO has accepted.
  func channelReadComplete(context: ChannelHandlerContext) {
    let end = Clock.monotonic() + Self.turnSlice
    // After a failure NIO's next call of accept fails too, and reports it.
    while Clock.monotonic() < end, let listener, let client = UnixSocket.accept(listener) { serve(client) }
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    listener = nil
    context.fireChannelInactive()
  }

  /// The session of the client at this socket, or nil if a limit is reached.
  private func makeSession(for client: CInt) -> Session? {
    let isRateLimited = Peer.user(of: client).map(methods.admission.isRateLimited) ?? false
    return isRateLimited ? nil : methods.session(for: peer(client))
  }

  private func serve(_ client: CInt) {
    guard let session = makeSession(for: client) else {
      close(client)
      return
    }
    ClientBootstrap(group: Loop.group)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .channelOption(.writeBufferWaterMark, value: Session.waterMark)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(session) } }
      }
      .withConnectedSocket(client)
      .whenFailure { _ in Loop.post { session.end() } }
  }
}
