// Pauses accept(2) for one second after it fails. Without free descriptors a waiting client would wake the loop endlessly; NIO's
// AcceptBackoffHandler does not prevent that, because the channel stays registered for reading (as of NIO 2.101).

import Glibc
import Logging
import NIOCore
import Protocols

@Loop final class AcceptPause: @Loop ChannelInboundHandler {
  typealias InboundIn = any Channel

  private static let pause: Nanoseconds = .second
  private static let minLogInterval: Nanoseconds = 60 * .second
  private var lastLogged: Instant?
  private var channel: (any Channel)?
  private lazy var resume = Timer { [weak self] _ in try? self?.channel?.syncOptions?.setOption(.autoRead, value: true) }

  /// Adds this handler to a server channel.
  nonisolated static func add(to channel: any Channel) -> EventLoopFuture<Void> {
    channel.eventLoop.makeCompletedFuture {
      try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(AcceptPause()) }
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    let now = Clock.monotonic()
    channel = context.channel
    try? context.channel.syncOptions?.setOption(.autoRead, value: false)
    resume.set(now + Self.pause)
    guard lastLogged.map({ now - $0 > Self.minLogInterval }) ?? true else { return }
    lastLogged = now
    let remedy = "close some clients, or raise LimitNOFILE= of the unit"
    Logger(label: "vehicled").error("cannot accept a connection: \(errorMessage(error)); \(remedy)")
  }

  func channelInactive(context: ChannelHandlerContext) {
    resume.set(nil)
    channel = nil
    context.fireChannelInactive()
  }
}
