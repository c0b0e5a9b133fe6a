// One client's connection: splits what comes into calls, answers them in order, one at a time, and keeps the streams that
// it asked for. A client that does not speak Varlink is logged once and let go; nobody else notices.

import Logging
import NIOCore
import Protocols

@Loop final class Session: @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// How many bytes may wait for a client before it counts as slow, and how long it may stay so.
  static let mostUnread = 256 << 10
  static let longestWait: Nanoseconds = 60 * .second

  let methods: Methods
  private(set) var peer: Peer?
  private let log = Logger(label: "vehicled")
  private var context: ChannelHandlerContext?
  private var outlet: Outlet?
  private var framing = VarlinkFraming()
  private var call: Call?
  private var answering = false
  /// It is counted among the clients.
  private var isServed = false
  /// It will say nothing more, but still reads.
  private var inputEnded = false
  /// It did not speak Varlink; what still comes is not looked at.
  private var isRefused = false
  private lazy var slow = Timer { [weak self] _ in self?.giveUp() }

  /// A session that answers with these methods.
  init(_ methods: Methods, peer: Peer?) {
    self.methods = methods
    self.peer = peer
  }

  // MARK: The channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    outlet = Outlet(context.channel)
    isServed = methods.sessionBegins()
  }

  func channelActive(context: ChannelHandlerContext) {
    if !isServed { context.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    if isServed { methods.sessionEnded() }
    isServed = false
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused, isServed else { return }
    framing.append(unwrapInboundIn(data).readableBytesView)
    answerCalls()
    // What waits while a call is being answered, or while the client does not read, is bounded as one message is.
    if framing.pending > VarlinkFraming.limit { violation("too many calls at once") }
  }

  func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
    inputEnded = true
    endIfAnswered()
  }

  /// A client that has said all and got all is let go, once it can have read everything.
  private func endIfAnswered() {
    guard inputEnded, call == nil, !answering, hasRoom, let context else { return }
    self.context = nil
    context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in context.close(promise: nil) }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    guard context.channel.isWritable else { return slow.set(Clock.monotonic() + Self.longestWait) }
    slow.set(nil)
    call?.hasRoomAgain?()
    answerCalls()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    self.context = nil
    outlet = nil
    slow.set(nil)
    call?.abandon()
    call = nil
  }

  /// There is room for more replies.
  var hasRoom: Bool { outlet?.hasRoom ?? false }

  private func giveUp() {
    log.notice("a client has not read for a minute and is let go", metadata: ["pid": "\(peer?.pid ?? 0)"])
    context?.close(promise: nil)
  }

  private func violation(_ words: String) {
    guard !isRefused else { return }
    isRefused = true
    methods.complain("a client does not speak Varlink and is let go: \(words)", of: peer)
    context?.close(promise: nil)
  }

  // MARK: Calls

  /// Answers what has come, until a call takes longer or the client does not read.
  private func answerCalls() {
    guard !answering else { return }
    answering = true
    defer { answering = false }
    do {
      while call == nil, let context, context.channel.isActive, hasRoom,
        let next = try framing.next({ try VarlinkCall($0) })
      {
        let call = Call(next, session: self)
        self.call = call
        methods.answer(call)
      }
    } catch let error as VarlinkViolation {
      violation(error.description)
    } catch {
      violation("more than 1 MiB without an end")
    }
    // A call that has not come to its end never will.
    if inputEnded { Loop.post { [weak self] in self?.endIfAnswered() } }
  }

  fileprivate func finished(_ finished: Call) {
    guard call === finished else { return }
    call = nil
    answerCalls()
  }

  fileprivate func write(_ message: [UInt8]) { outlet?.write(message) }
}

/// A call that is being answered. Exactly one of `reply`, `fail` ends it; `continue` may come before, where the caller
/// takes more than one reply. To a oneway call nothing is sent.
@Loop final class Call: WatcherSink {
  let call: VarlinkCall
  /// nil once the call has ended.
  private var session: Session?
  /// Called when the client goes away before the end.
  var cancel: (@Loop () -> Void)?
  /// Called when a client that was slow has read what waited.
  var hasRoomAgain: (@Loop () -> Void)?

  init(_ call: VarlinkCall, session: Session) {
    self.call = call
    self.session = session
  }

  var peer: Peer? { session?.peer }
  var hasRoom: Bool { session?.hasRoom ?? false }

  func reply(_ result: some VarlinkParameters) { end(call.oneway ? [] : VarlinkReply.message(result)) }
  func reply(encoded message: [UInt8]) { end(message) }
  func fail(_ error: ContractError) { end(call.oneway ? [] : VarlinkReply.message(error)) }

  /// One reply of several.
  func `continue`(_ result: some VarlinkParameters) { write(VarlinkReply.message(result, continues: true)) }

  func write(_ message: [UInt8]) {
    if !call.oneway { session?.write(message) }
  }

  private func end(_ message: [UInt8]) {
    if !call.oneway { session?.write(message) }
    cancel = nil
    hasRoomAgain = nil
    let session = session
    self.session = nil
    session?.finished(self)
  }

  /// The client is gone.
  fileprivate func abandon() {
    session = nil
    cancel?()
    cancel = nil
    hasRoomAgain = nil
  }
}
