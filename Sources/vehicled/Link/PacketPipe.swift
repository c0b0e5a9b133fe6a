// A descriptor that BlueZ hands out for a characteristic (AcquireNotify, AcquireWrite): a socket on which one packet is
// one notification or one write. A notification of no bytes looks like its end; GATTChannel tells the two apart.

import Bus
import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class PacketPipe: @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private var context: ChannelHandlerContext?
  private var outlet: Outlet?
  private var received: (@Loop ([UInt8]) -> Void)?
  private var ended: (@Loop () -> Void)?

  private init(received: @escaping @Loop ([UInt8]) -> Void, ended: @escaping @Loop () -> Void) {
    self.received = received
    self.ended = ended
  }

  /// Takes the descriptor over; nil where it is none that keeps packets apart.
  static func open(
    _ descriptor: BusDescriptor, received: @escaping @Loop ([UInt8]) -> Void, ended: @escaping @Loop () -> Void
  ) -> PacketPipe? {
    let number = descriptor.take()
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

  /// Sends one packet; `done` is told the failure, or nil.
  func write(_ bytes: [UInt8], done: @escaping @Loop (String?) -> Void) {
    guard let outlet else { return done("the connection is being closed") }
    outlet.write(bytes, then: done)
  }

  /// One write to it is one packet.
  var descriptor: CInt? { outlet?.descriptor }

  /// Nothing is told afterwards.
  func close() {
    received = nil
    ended = nil
    context?.close(promise: nil)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    outlet = Outlet(context.channel)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    outlet = nil
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
