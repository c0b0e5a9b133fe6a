// A link over a NIO channel, whose bytes go to the owner and whose end is the link's end. `tcp` and `serial`, in files of
// their own, differ in how they open it.

import NIOCore
import Protocols

@Loop final class ChannelLink: Link, @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private weak var owner: (any LinkOwner)?
  private var context: ChannelHandlerContext?
  private var outlet: Outlet?
  private var failure: String?
  /// What was read last. Its storage is used again, unless somebody keeps the bytes.
  private var inbox: [UInt8] = []
  private let goneReason: String
  private let isAccepted: Bool
  /// See `Link`. Given before it is up, where that is so; whoever looks at the link is told of changes.
  var baud: Int? { didSet { if oldValue != nil { owner?.linkHasNews() } } }

  /// `goneReason` tells a person what it means that the other side closed. A channel that was accepted comes up by itself.
  init(owner: any LinkOwner, goneReason: String, isAccepted: Bool = false) {
    self.owner = owner
    self.goneReason = goneReason
    self.isAccepted = isAccepted
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    outlet = Outlet(context.channel)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    outlet = nil
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
    failure = plainWords(error)
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    failed(failure ?? goneReason)
  }

  /// The link can be used from now on, unless it ended before or was given up.
  func cameUp() {
    guard let owner else { return context?.close(promise: nil) ?? () }
    owner.linkCameUp(maximumSend: nil)
  }

  /// The link is dead, or never came up.
  func failed(_ reason: String) {
    let owner = owner
    self.owner = nil
    owner?.linkWentDown(reason, final: false)
  }

  func send(_ bytes: [UInt8], id: SendID?) {
    guard let id else { return outlet?.write(bytes) ?? () }
    outlet?.write(bytes) { [weak self] failure in self?.owner?.linkSent(id, failure: failure) }
  }

  var descriptor: CInt? { outlet?.descriptor }
  var details: [String: String] { baud.map { ["baud": "\($0)"] } ?? [:] }

  func close() {
    owner = nil
    context?.close(promise: nil)
  }
}

extension Channel {
  /// For a bootstrap's initializer, which runs on the loop.
  func add(_ link: ChannelLink) -> EventLoopFuture<Void> {
    eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try pipeline.syncOperations.addHandler(link) } }
  }
}
