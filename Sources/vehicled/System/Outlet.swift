// The way out of a channel. While nothing waits in the channel, a message is one write(2) of our own: that is the whole
// cost of a poll or of a watcher's message. What the kernel does not take at once goes on through the channel, in order.

import Glibc
import NIOCore

@Loop final class Outlet {
  private let channel: any Channel
  /// Where the channel writes. The channel closes it and stops being active in one step, both on the loop's thread.
  let descriptor: CInt?
  /// How many messages the channel holds.
  private var waiting = 0

  /// The way out of a socket's or pipe's channel.
  init(_ channel: any Channel) {
    self.channel = channel
    let pipeline = channel.pipeline.syncOperations
    let pipe = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.PipeHandle.self) { $0.output }
    let socket = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
    descriptor = pipe ?? socket
  }

  /// Whether the other side reads fast enough.
  var hasRoom: Bool { channel.isWritable }

  /// Writes a message; `told` gets nil once the kernel has taken all of it, or what went wrong.
  func write(_ message: [UInt8], told: (@Loop (String?) -> Void)? = nil) {
    guard channel.isActive else { return told?("the link is down") ?? () }
    var taken = 0
    if waiting == 0, let descriptor {
      taken = max(Glibc.write(descriptor, message, message.count), 0)
      if taken == message.count { return told?(nil) ?? () }
    }
    // Errors too: the channel meets them again and ends with them.
    waiting += 1
    let promise = channel.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { result in
      Loop.assumeIsolated {
        self.waiting -= 1
        if case .failure(let error) = result { told?(plainWords(error)) } else { told?(nil) }
      }
    }
    channel.writeAndFlush(ByteBuffer(bytes: message[taken...]), promise: promise)
  }
}
