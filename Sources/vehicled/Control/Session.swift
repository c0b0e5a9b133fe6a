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
  /// How many bytes had come at each moment, as far as they were not answered yet.
  private var arrivals: [(bytes: Int, at: Instant)] = []
  private var arrived = 0
  private static let grain: Nanoseconds = 5 * .millisecond
  private static let mostArrivals = 256
  private var call: Call?
  private var answering = false
  /// Calls that came at once take turns with everything else: for so long, then the rest later.
  private static let share: Nanoseconds = 500 * .microsecond
  /// The lease that set-points on this connection carried.
  private var driven: (device: Device, token: String)?
  /// What polkit granted to this client, under the access rules of that generation.
  private var granted: (rights: Set<Right>, generation: Int) = ([], 0)
  /// It is counted among the clients.
  private var isServed = false
  /// It will say nothing more, but still reads.
  private var inputEnded = false
  /// It did not speak Varlink; what still comes is not looked at.
  private var isRefused = false
  private lazy var turn = Timer { [weak self] _ in self?.answerCalls() }
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
    isServed = methods.begins(self)
  }

  func channelActive(context: ChannelHandlerContext) {
    if !isServed { context.close(promise: nil) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    if isServed { methods.ended(self) }
    isServed = false
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused, isServed else { return }
    let bytes = unwrapInboundIn(data)
    came(bytes.readableBytes)
    framing.append(bytes.readableBytesView)
    answerCalls()
    // What waits while a call is being answered, or while the client does not read, is bounded as one message is.
    if framing.pending > VarlinkFraming.limit { violation("too many calls at once") }
  }

  func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
    inputEnded = true
    drivesNoMore()
    if let call, let end = call.endsWithInput {
      call.cancel?()
      call.fail(end)
    }
    endIfAnswered()
  }

  /// A client that has said all and got all is let go, once it can have read everything. Whose calls wait for their turn has not.
  private func endIfAnswered() {
    guard inputEnded, call == nil, !answering, !turn.isSet, hasRoom, let context else { return }
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
    turn.set(nil)
    drivesNoMore()
    call?.abandon()
    call = nil
  }

  /// A driver whose connection ends lets go of the handle.
  private func drivesNoMore() {
    driven.map { $0.device.endLease($0.token, "the driver is gone") }
    driven = nil
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
      let end = Clock.monotonic() + Self.share
      var isFirst = true
      while call == nil, let context, context.channel.isActive, hasRoom {
        if !isFirst, framing.pending > 0, Clock.monotonic() >= end { return goOn() }
        isFirst = false
        guard let next = try framing.next({ try VarlinkCall($0) }) else { break }
        let call = Call(next, session: self, arrived: arrival())
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

  /// False where the client has hung up already.
  fileprivate func bind(_ device: Device, _ token: String) -> Bool {
    if !inputEnded, driven?.token != token { driven = (device, token) }
    return !inputEnded
  }

  fileprivate func has(_ right: Right) -> Bool {
    granted.generation == methods.accessGeneration && (granted.rights.contains(right) || granted.rights.contains(.control))
  }

  fileprivate func grant(_ right: Right) {
    if granted.generation != methods.accessGeneration { granted = ([], methods.accessGeneration) }
    granted.rights.insert(right)
  }

  /// Takes note of when bytes came. Neighbours share a mark, that of the first: there are never many.
  private func came(_ count: Int) {
    arrived += count
    let now = Clock.monotonic()
    if let last = arrivals.last, now - last.at < Self.grain || arrivals.count >= Self.mostArrivals {
      arrivals[arrivals.count - 1].bytes = arrived
    } else {
      arrivals.append((arrived, now))
    }
  }

  /// When the bytes of the call that was just taken had all come, or a little earlier.
  private func arrival() -> Instant {
    let taken = arrived - framing.pending
    while let first = arrivals.first, first.bytes < taken { arrivals.removeFirst() }
    let at = arrivals.first?.at ?? Clock.monotonic()
    // What comes next is of its own time.
    if arrivals.first?.bytes == taken { arrivals.removeFirst() }
    return at
  }

  /// In another round of the loop, after whatever else is due: a posted task would come before it.
  private func goOn() { turn.set(Clock.monotonic()) }

  /// The next call is answered in another turn: what ended this one may have more to do in its own.
  fileprivate func finished(_ finished: Call) {
    guard call === finished else { return }
    call = nil
    if !answering, inputEnded || framing.pending > 0 { goOn() }
  }

  /// The access rules have changed: what was granted under others ends.
  func accessChanged() {
    // A call that is just being answered was granted; what lasts is looked at again.
    guard let call, let cancel = call.cancel, let right = call.right, let missing = methods.refusal(of: right, for: peer) else { return }
    cancel()
    call.fail(.permissionDenied(missing: missing))
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
  /// When all of it had come: it may have waited for others of the same client.
  let arrived: Instant
  /// What it needed to be allowed.
  var right: Right?
  /// How it ends when the client can say nothing more, though it may still listen; nil: it goes on.
  var endsWithInput: ContractError?

  init(_ call: VarlinkCall, session: Session, arrived: Instant) {
    self.call = call
    self.session = session
    self.arrived = arrived
  }

  var peer: Peer? { session?.peer }
  /// Whether there is still somebody to answer.
  var isAlive: Bool { session != nil }
  /// Set-points under this lease came over the connection: it ends with it. False where it has ended.
  func bind(_ device: Device, _ token: String) -> Bool { session?.bind(device, token) ?? false }
  /// Whether the client was granted the right before.
  func has(_ right: Right) -> Bool { session?.has(right) ?? false }
  func grant(_ right: Right) { session?.grant(right) }
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
