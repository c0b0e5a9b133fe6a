// Reads the events of a kernel descriptor (inotify, netlink) on the loop. It costs nothing while there are no events.

import Glibc
import NIOCore
import NIOPosix

@Loop final class KernelEventReader: @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let received: @Loop ([UInt8]) -> Void

  /// Takes ownership of the descriptor. `received` gets the events of each read; every read returns whole events.
  init(_ descriptor: CInt, _ received: @escaping @Loop ([UInt8]) -> Void) {
    self.received = received
    NIOPipeBootstrap(group: Loop.group)
      // The size that netlink(7) recommends. inotify fails with EINVAL if there is no room for one event.
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 32_768))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(self) } }
      }
      .takingOwnershipOfDescriptor(input: descriptor)
      .whenFailure { fatalError("cannot watch a descriptor: \($0)") }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    received(Array(unwrapInboundIn(data).readableBytesView))
  }
}
