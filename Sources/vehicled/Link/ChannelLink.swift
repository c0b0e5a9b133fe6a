// A link over an NIO channel. Received bytes go to the owner; when the channel closes, the link goes down. TCPLink.swift and
// SerialLink.swift open the channel.

import NIOCore
import Protocols

@Loop final class ChannelLink: Link, @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private weak var owner: (any LinkOwner)?
  private var context: ChannelHandlerContext?
  private var writer: ChannelWriter?
  private var failure: String?
  /// The last bytes read. The storage is reused unless the bytes are retained elsewhere.
  private var inbox: [UInt8] = []
  private let closedReason: String
  private let isAccepted: Bool
  /// See `Link`. Set before the link is up; a later change is reported to the owner.
  var baud: Int? { didSet { if oldValue != nil { owner?.linkDetailsChanged() } } }

  /// `closedReason` is the reason to report if the peer closes the connection. An accepted channel is up as soon as it is active.
  /// For other channels, the creator calls `cameUp`.
  init(owner: any LinkOwner, closedReason: String, isAccepted: Bool = false) {
    self.owner = owner
    self.closedReason = closedReason
    self.isAccepted = isAccepted
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = ChannelWriter(context.channel)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    writer = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    if isAccepted { cameUp() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    inbox.removeAll(keepingCapacity: true)
    unwrapInboundIn(data).withUnsafeReadableBytes { inbox.append(contentsOf: $0) }
    owner?.linkReceived(inbox)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    failure = errorMessage(error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    wentDown(failure ?? closedReason)
  }

  /// Reports that the link is up, unless it is already down or closed.
  func cameUp() {
    guard let owner else { return context?.close(promise: nil) ?? () }
    owner.linkCameUp(maximumSend: nil)
  }

  /// Reports that the link is down.
  func wentDown(_ reason: String) {
    let owner = owner
    self.owner = nil
    owner?.linkWentDown(reason, final: false)
  }

  func send(_ bytes: [UInt8], id: SendID?) {
    guard let id else { return writer?.write(bytes) ?? () }
    writer?.write(bytes) { [weak self] failure in self?.owner?.linkSent(id, failure: failure) }
  }

  var descriptor: CInt? { writer?.descriptor }
  var details: [String: String] { baud.map { ["baud": "\($0)"] } ?? [:] }

  func close() {
    owner = nil
    context?.close(promise: nil)
  }
}

extension Channel {
  /// Adds the link as a handler. For use in a bootstrap's channel initializer, which runs on the loop.
  func add(_ link: ChannelLink) -> EventLoopFuture<Void> {
    eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try pipeline.syncOperations.addHandler(link) } }
  }
}
