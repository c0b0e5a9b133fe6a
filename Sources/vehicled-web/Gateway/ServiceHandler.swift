// The connection to the socket of a service: bytes in both directions. It reads only while the browser takes what arrives; meanwhile
// the service merges its values.

import NIOCore
import NIOPosix

/// Receives the events of a connection to a service.
protocol ServiceOwner: AnyObject {
  /// Whether to read from the service.
  var acceptsReplies: Bool { get }
  func received(reply: ByteBuffer)
  /// All bytes that have arrived were passed on.
  func repliesEnded()
  /// Whether the service reads as fast as the browser sends has changed.
  func serviceWritabilityChanged()
  func serviceClosed()
}

extension ServiceOwner {
  /// Opens a channel over a connected socket, which it owns, and passes its handler to `keep` before it can receive anything.
  func open(_ descriptor: CInt, on loop: any EventLoop, keep: @escaping (Self, ServiceHandler) -> Void) -> EventLoopFuture<any Channel> {
    let bound = NIOLoopBound((owner: self, keep: keep), eventLoop: loop)
    return ClientBootstrap(group: loop).channelInitializer { channel in
      channel.eventLoop.makeCompletedFuture {
        let handler = ServiceHandler(bound.value.owner)
        bound.value.keep(bound.value.owner, handler)
        try channel.pipeline.syncOperations.addHandler(handler)
      }
    }.withConnectedSocket(descriptor)
  }
}

final class ServiceHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let owner: any ServiceOwner
  private var context: ChannelHandlerContext?
  private var heldRead = false

  init(_ owner: any ServiceOwner) { self.owner = owner }

  var isWritable: Bool { context?.channel.isWritable ?? false }

  func send(_ bytes: ByteBuffer) { context?.writeAndFlush(Self.wrapOutboundOut(bytes), promise: nil) }

  func close() { context?.close(promise: nil) }

  func read(context: ChannelHandlerContext) {
    if owner.acceptsReplies { context.read() } else { heldRead = true }
  }

  /// Reads on, if the owner accepts replies again.
  func resumeReading() {
    guard heldRead, owner.acceptsReplies else { return }
    heldRead = false
    context?.read()
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { owner.received(reply: Self.unwrapInboundIn(data)) }
  func channelReadComplete(context: ChannelHandlerContext) { owner.repliesEnded() }
  func channelWritabilityChanged(context: ChannelHandlerContext) { owner.serviceWritabilityChanged() }
  func channelInactive(context: ChannelHandlerContext) { owner.serviceClosed() }
  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
