// A socket from BlueZ for a characteristic (AcquireNotify, AcquireWrite): each packet is one notification or write. An empty
// notification looks like the end of the socket; GATTChannel handles both cases.

import CLinux
import DBus
import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class PacketPipe: @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private var context: ChannelHandlerContext?
  private var writer: ChannelWriter?
  private var received: (@Loop ([UInt8]) -> Void)?
  private var ended: (@Loop () -> Void)?

  private init(received: @escaping @Loop ([UInt8]) -> Void, ended: @escaping @Loop () -> Void) {
    self.received = received
    self.ended = ended
  }

  /// Takes ownership of the descriptor. Returns nil if it is not a SOCK_SEQPACKET socket.
  static func open(
    _ descriptor: DBusDescriptor, received: @escaping @Loop ([UInt8]) -> Void, ended: @escaping @Loop () -> Void
  ) -> PacketPipe? {
    let number = descriptor.release()
    var type: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    guard number >= 0 else { return nil }
    guard getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &size) == 0, type == CInt(SOCK_SEQPACKET.rawValue) else {
      Glibc.close(number)
      return nil
    }
    let pipe = PacketPipe(received: received, ended: ended)
    ClientBootstrap(group: Loop.group)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 1024))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(pipe) } }
      }
      .withConnectedSocket(number)
      .whenFailure { _ in Loop.post { pipe.end() } }
    return pipe
  }

  /// Sends one packet; `done` gets the error message, or nil on success.
  func write(_ bytes: [UInt8], done: @escaping @Loop (String?) -> Void) {
    guard let writer else { return done("connection closed") }
    writer.write(bytes, then: done)
  }

  /// The socket. Each write is one packet.
  var descriptor: CInt? { writer?.descriptor }

  /// Closes the socket without further callbacks.
  func close() {
    received = nil
    ended = nil
    context?.close(promise: nil)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = ChannelWriter(context.channel)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    writer = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { received?(Array(buffer: unwrapInboundIn(data))) }
  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  func channelInactive(context: ChannelHandlerContext) { end() }

  private func end() {
    let ended = ended
    close()
    ended?()
  }
}
