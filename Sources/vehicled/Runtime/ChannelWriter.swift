// The writing side of a channel. While the channel's queue is empty, a message is one direct write(2), which is cheaper than a write
// through NIO. Bytes that the kernel does not accept at once go through the channel, in order.

import Glibc
import NIOCore

@Loop final class ChannelWriter {
  private let channel: any Channel
  /// The descriptor that the channel writes to. Valid while the channel is active: the channel closes it and becomes inactive in one
  /// step, on the loop's thread.
  let descriptor: CInt?
  /// The number of messages in the channel's queue.
  private var queued = 0

  /// Creates a writer for the channel of a socket or pipe.
  init(_ channel: any Channel) {
    self.channel = channel
    let pipeline = channel.pipeline.syncOperations
    let pipe = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.PipeHandle.self) { $0.output }
    let socket = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    descriptor = pipe ?? socket
  }

  /// Whether the channel's queue has room, because the peer reads fast enough.
  var hasRoom: Bool { channel.isWritable }

  /// Writes a message; `finish` gets nil once the kernel has accepted all of it, or the error message.
  func write(_ message: [UInt8], then finish: (@Loop (String?) -> Void)? = nil) {
    guard channel.isActive else { return finish?("the link is down") ?? () }
    var accepted = 0
    if queued == 0, let descriptor {
      accepted = max(Glibc.write(descriptor, message, message.count), 0)
      if accepted == message.count { return finish?(nil) ?? () }
    }
    // If write(2) failed, the message is passed to the channel, which gets the same error and closes.
    queued += 1
    let promise = channel.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { result in
      Loop.assumeIsolated {
        self.queued -= 1
        if case .failure(let error) = result { finish?(errorMessage(error)) } else { finish?(nil) }
      }
    }
    channel.writeAndFlush(ByteBuffer(bytes: message[accepted...]), promise: promise)
  }
}
