// Limits what a client can hold on a connection without completing a request: bytes and time. A slow request, an idle connection and a
// reply that is not read all end by the same rule.

import NIOCore

final class RequestGuard: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The maximum length of a request with its body, in bytes.
  private static let maxLength = 32 << 10
  /// The maximum time until the next request is complete.
  private static let timeout = TimeAmount.seconds(60)

  private let connections: ConnectionTable
  private var received = 0
  private var deadline: Scheduled<Void>?

  init(_ connections: ConnectionTable) { self.connections = connections }

  func channelActive(context: ChannelHandlerContext) {
    connections.add(context.channel)
    setDeadline(context.channel)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received += Self.unwrapInboundIn(data).readableBytes
    guard received <= Self.maxLength else { return context.close(promise: nil) }
    context.fireChannelRead(data)
  }

  /// A request is complete.
  func requestCompleted(_ channel: any Channel) {
    received = 0
    setDeadline(channel)
  }

  private func setDeadline(_ channel: any Channel) {
    deadline?.cancel()
    deadline = channel.eventLoop.scheduleTask(in: Self.timeout) { channel.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }
}
