// One client's connection: splits its input into calls and answers them in order, one at a time, when the scheduler gives it a turn.
// It reads only as much as it is about to answer. A violation of the Varlink protocol is logged once and closes the connection.

import CLinux
import Glibc
import Logging
import NIOCore
import Protocols
import ServiceRuntime
import Varlink

@Loop final class Session: @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The unread output in bytes at which a client counts as slow.
  private static let maxUnread = 256 << 10
  static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(low: 1 << 12, high: maxUnread)
  /// The maximum number of bytes per read. Reading pauses while at least this many bytes, with a complete call, are unanswered.
  static let readAhead = 8 << 10
  /// The maximum time from a call's first byte to its last.
  private static let maxCallDuration: Nanoseconds = 10 * .second

  let methods: Methods
  private(set) var peer: Peer?
  private let log = Logger(label: "vehicled")
  private var context: ChannelHandlerContext?
  private var writer: ChannelWriter?
  /// The account of the client's user; nil once the client has left.
  private var account: Account?
  private var backlog = Backlog()
  /// Unanswered bytes that count against the user's shared limit.
  private var sharedInput = 0
  /// Whether a read is requested.
  private var isReading = false
  /// When reading was paused, or nil while it is not.
  private var pausedSince: Instant?
  private var call: Call?
  /// The rest of the current call, while it waits for the session's turn.
  private var continuation: (@Loop () -> Void)?
  private var isAnswering = false
  /// Whether the decision on large calls of this client is pending.
  private var isDeciding = false
  /// Cancels the pending decision on large calls.
  private var cancelDecision: @Loop () -> Void = {}
  /// Whether the session is in the scheduler's queue.
  private var isQueued = false
  private let connectedAt = Clock.monotonic()
  private var hasCalled = false
  /// The device and lease of the setpoints on this connection.
  private var driven: (device: Device, token: String)?
  /// Whether this session's calls take precedence while the lease is valid. At most `maxDrivers` connections per lease have precedence.
  private var hasPrecedence = false
  private static let maxDrivers = 2
  /// Whether the client is not known to have a right: no call on this connection was granted yet, and the lists did not name its user.
  private(set) var isGuest: Bool
  /// The generation of the access rules under which a call was last granted.
  private var grantedGeneration: Int?
  /// The right that polkit granted, and the generation of the access rules at that time.
  private var polkitGrant: (right: Right?, generation: Int) = (nil, 0)
  /// Whether the client has shut down its sending side. It may still read.
  private var inputEnded = false
  /// Whether everything is answered and the connection is being closed.
  private var isEnding = false
  /// Whether the connection is closed. Pending oneway calls are still carried out.
  private var isGone = false
  /// Whether the client has violated the protocol or a limit. Further input is ignored.
  private var isRejected = false
  private lazy var incompleteCallTimer = Timer { [weak self] _ in self?.reject("incomplete call for 10 s") }
  private lazy var slowReaderTimer = Timer { [weak self] _ in self?.closeSlow() }

  /// Creates a session that answers with these methods, or returns nil if a limit on connections is reached.
  init?(_ methods: Methods, peer: Peer?, isGuest: Bool) {
    (self.methods, self.peer, self.isGuest) = (methods, peer, isGuest)
    guard let account = methods.admit(self) else { return nil }
    self.account = account
  }

  // MARK: The channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = ChannelWriter(context.channel)
    // Reads are requested explicitly and are small.
    let options = context.channel.syncOptions
    try? options?.setOption(.autoRead, value: false)
    try? options?.setOption(.maxMessagesPerRead, value: 1)
    let allocator = AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 512, maximum: Self.readAhead)
    try? options?.setOption(.recvAllocator, value: allocator)
  }

  func channelActive(context: ChannelHandlerContext) { advance() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let account, !isRejected else { return }
    let wasRequested = isReading
    isReading = false
    backlog.append(unwrapInboundIn(data).readableBytesView, at: Clock.monotonic())
    // After the peer closes, NIO reads the rest of the input without a request. If it exceeds the limit, all pending calls are dropped.
    if !wasRequested, backlog.pending > Account.ownLimit, !account.hasRoom { drop() }
  }

  func channelReadComplete(context: ChannelHandlerContext) { advance() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
    endInput()
    advance()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    guard context.channel.isWritable else { return startSlowReaderTimer() }
    if isEnding { startSlowReaderTimer() } else { slowReaderTimer.set(nil) }
    call?.roomHandler?()
    advance()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    self.context = nil
    writer = nil
    slowReaderTimer.set(nil)
    incompleteCallTimer.set(nil)
    isGone = true
    endInput()
    cancelDecision()
    if let call, !call.request.oneway {
      call.abandon()
      self.call = nil
    }
    advance()
  }

  /// Handles the end of the client's input, which also ends its motion lease.
  private func endInput() {
    inputEnded = true
    driven.map { $0.device.releaseLease($0.token, "client disconnected") }
    driven = nil
    if let call, let error = call.inputEndError {
      call.cancel?()
      call.fail(error)
    }
  }

  /// Whether there is room for more replies.
  var hasRoom: Bool { writer?.hasRoom ?? false }

  private func startSlowReaderTimer() { slowReaderTimer.set(Clock.monotonic() + methods.admission.maxUnreadTime) }

  private func closeSlow() {
    log.notice("client connection closed: its replies were not read for 60 s", metadata: ["pid": "\(peer?.pid ?? 0)"])
    close()
  }

  /// Logs a protocol error of the client and closes the connection.
  private func reject(_ message: String) {
    guard !isRejected else { return }
    methods.admission.logViolation("client connection closed: protocol error: \(message)", by: peer)
    drop()
  }

  /// Closes the connection, and ignores all input that is not answered yet.
  private func drop() {
    isRejected = true
    backlog.clear()
    close()
  }

  func close() { context?.close(promise: nil) }

  // MARK: Pending input

  /// Whether this session's calls take precedence now: it has sent setpoints under a lease that is still valid, and was one of the first
  /// connections to do so.
  var isDriving: Bool { hasPrecedence && driven.map { $0.device.lease?.token == $0.token } ?? false }

  /// Whether the client connected before that moment and has not made any call.
  func isIdle(since moment: Instant) -> Bool { !hasCalled && connectedAt < moment }

  /// Decides the next step: queue a call, read more input, start the timeout of an incomplete call, or end.
  func advance() {
    guard !isAnswering, let account else { return }
    let hasCall = checkForCall()
    let more = max(0, backlog.pending - Account.ownLimit) - sharedInput
    sharedInput += more
    if more != 0 { account.addShared(more) }
    if continuation != nil || hasCall && call == nil && (hasRoom || isGone), !isQueued {
      isQueued = true
      methods.scheduler.add(self, of: account)
    }
    guard !isGone else { return hasCall || call != nil ? () : leave(account) }
    if backlog.pending > 0, !hasCall {
      if !incompleteCallTimer.isSet { incompleteCallTimer.set(Clock.monotonic() + Self.maxCallDuration) }
    } else {
      incompleteCallTimer.set(nil)
    }
    readMore(account, hasCall: hasCall)
    if inputEnded, call == nil, !hasCall, !isDeciding, hasRoom { closeAfterOutput() }
  }

  /// Returns whether a complete call is buffered. If a client that may not make large calls sends one, starts a decision about its rights.
  private func checkForCall() -> Bool {
    guard !isRejected, !isDeciding else { return false }
    do { return try backlog.hasCall() } catch {}
    guard backlog.limit < VarlinkFraming.callLimit else {
      reject("incomplete call of more than \(backlog.limit >> 10) KiB")
      return false
    }
    isDeciding = true
    cancelDecision = methods.decideLargeCalls(for: self) { [weak self] missing in self?.applyDecision(missing) }
    return checkForCall()
  }

  /// Applies the decision whether the client may make large calls. `missing` is the reason why not, or nil.
  private func applyDecision(_ missing: String?) {
    isDeciding = false
    if let missing {
      let message = "calls of more than \(backlog.limit >> 10) KiB require the observe right: \(missing)"
      write(VarlinkReply.message(.permissionDenied(missing: message)))
      return reject("incomplete call of more than \(backlog.limit >> 10) KiB")
    }
    backlog.limit = VarlinkFraming.callLimit
    Loop.post { [weak self] in self?.advance() }
  }

  private func readMore(_ account: Account, hasCall: Bool) {
    guard !isReading, !inputEnded, !isRejected, !isDeciding, let context, let descriptor = writer?.descriptor else { return }
    let isFull = hasCall ? backlog.pending >= Self.readAhead : backlog.pending > Account.ownLimit && !account.hasRoom
    guard !isFull else {
      if !hasCall { account.notifyWhenRoom(self) }
      if pausedSince == nil { pausedSince = Clock.monotonic() }
      return
    }
    // Setpoints that arrived during the pause must not count as new.
    if let since = pausedSince { backlog.markDelayed(max(0, Int(clinux_unread(descriptor))), since: since) }
    pausedSince = nil
    isReading = true
    context.read()
  }

  /// Closes the connection once the last output is flushed.
  private func closeAfterOutput() {
    guard !isEnding, let context else { return }
    isEnding = true
    // Unread output must not keep the connection open either, even if it is too little for the client to count as slow.
    startSlowReaderTimer()
    context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in context.close(promise: nil) }
  }

  /// Ends a session for which there is no channel.
  func end() { account.map(leave) }

  /// Ends the session once its connection is closed and no oneway call is pending.
  private func leave(_ account: Account) {
    self.account = nil
    methods.admission.recordEnd(of: self, account)
  }

  /// Stops input: calls that have arrived are answered, then the connection ends.
  func stopInput() {
    guard !inputEnded, let descriptor = writer?.descriptor else { return }
    // The client cannot send from now on; the channel reads the rest of the kernel's buffer, then the end.
    shutdown(descriptor, CInt(SHUT_RD))
  }

  /// Whether the input has ended and all calls in it are answered. A stream counts as answered.
  var isAnswered: Bool { account == nil || inputEnded && !isQueued && !isDeciding && (call?.isStream ?? true) && !checkForCall() }

  // MARK: Calls

  /// Continues the current call, or answers the next one.
  func answerNext() {
    isQueued = false
    if let continuation {
      self.continuation = nil
      isAnswering = true
      continuation()
      isAnswering = false
      return advance()
    }
    guard call == nil, hasRoom || isGone, !isRejected else { return }
    isAnswering = true
    do {
      // After a disconnect only oneway calls are carried out.
      if let (next, arrived) = try backlog.next(), next.oneway || !isGone {
        hasCalled = true
        let call = Call(next, session: self, arrived: arrived ?? Clock.monotonic())
        self.call = call
        methods.answer(call)
      }
    } catch {
      reject((error as? VarlinkViolation)?.description ?? "\(error)")
    }
    isAnswering = false
    advance()
  }

  /// Continues the call in the session's next turn, because many sessions may have waited for the same event.
  func resume(_ continuation: @escaping @Loop () -> Void) {
    self.continuation = continuation
    advance()
  }

  /// Binds the lease to this connection. Returns false if the client's input has ended.
  func bind(_ device: Device, _ token: String) -> Bool {
    guard !inputEnded else { return false }
    if driven?.token != token {
      driven = (device, token)
      hasPrecedence =
        methods.admission.sessions.values.count { $0 !== self && $0.hasPrecedence && $0.driven?.token == token } < Self.maxDrivers
    }
    return true
  }

  /// Whether polkit has granted this right on this connection under the current access rules.
  func hasPolkitGrant(of right: Right) -> Bool {
    polkitGrant.generation == methods.accessGeneration && polkitGrant.right.map { $0 >= right } ?? false
  }

  /// Records that a call was granted. `right` is set if polkit granted it; it is then cached for the connection.
  func grant(_ right: Right?) {
    if let account, isGuest || grantedGeneration != methods.accessGeneration {
      methods.admission.recordGrant(account, wasGuest: isGuest)
      (isGuest, grantedGeneration) = (false, methods.accessGeneration)
    }
    guard let right else { return }
    polkitGrant = (hasPolkitGrant(of: right) ? polkitGrant.right : right, methods.accessGeneration)
  }

  /// Handles the end of a call. The next one waits for the session's turn.
  func callEnded(_ ended: Call) {
    guard call === ended else { return }
    call = nil
    advance()
  }

  /// Ends the current stream or pending command if the changed access rules no longer permit it.
  func recheckStream(_ answers: NameService.Answers) {
    // Only calls that can be cancelled are checked again; all others keep their grants.
    guard let call, let cancel = call.cancel, let missing = methods.recheck(call, answers) else { return }
    cancel()
    call.fail(.permissionDenied(missing: missing))
  }

  func write(_ message: [UInt8]) { writer?.write(message) }
}
