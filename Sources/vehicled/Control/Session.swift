// One client's connection: splits what comes into calls, answers them in order, one at a time, when its turn comes, and
// keeps the streams that it asked for. It reads no more than it is about to answer. A client that does not speak Varlink is
// logged once and let go; nobody else notices.

import CLinux
import Glibc
import Logging
import NIOCore
import Protocols

@Loop final class Session: @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// How many bytes may wait for a client before it counts as slow, and how long it may stay so.
  static let maxUnread = 256 << 10
  static let maxWait: Nanoseconds = 60 * .second
  /// How many bytes are read at once, and no more while as many wait to be answered.
  static let readAhead = 8 << 10
  /// How long a call may take from its first byte to its last.
  private static let maxCallDuration: Nanoseconds = 10 * .second

  let methods: Methods
  private(set) var peer: Peer?
  private let log = Logger(label: "vehicled")
  private var context: ChannelHandlerContext?
  private var outlet: Outlet?
  /// What its user takes, while it is served.
  private var account: Account?
  private var backlog = Backlog()
  /// How many of the bytes that wait are beyond those that every connection may have.
  private var shared = 0
  /// It has asked for input, or has had none of it since this moment though there may be some.
  private var isReading = false
  private var pausedSince: Instant?
  private var call: Call?
  /// The rest of answering it: it was put off, and waits for its turn.
  private var rest: (@Loop () -> Void)?
  private var isAnswering = false
  /// Whether it may make long calls is being decided.
  private var isBeingDecided = false
  /// It has a call to answer and waits for its turn.
  private var isQueued = false
  private let began = Clock.monotonic()
  private var hasCalled = false
  /// The lease that set-points on this connection carried.
  private var driven: (device: Device, token: String)?
  /// Its calls come before those of others while the lease holds: few connections of one lease have that.
  private var hasPrecedence = false
  private static let maxDrivers = 2
  /// A call of it was granted, whatever the access rules are now.
  private(set) var isTrusted = false
  /// What was granted to this client under the access rules of that generation.
  private var granted: (rights: Set<Right>, generation: Int) = ([], 0)
  /// It will say nothing more, but still reads.
  private var inputEnded = false
  /// It has got everything, and is being let go.
  private var isEnding = false
  /// The connection is closed; calls that want no reply are answered still.
  private var isGone = false
  /// It did not speak Varlink; what still comes is not looked at.
  private var isRefused = false
  private lazy var unfinished = Timer { [weak self] _ in self?.refuse("a call without an end for 10 s") }
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
    // It reads when it is about to answer, and little at a time.
    let options = context.channel.syncOptions
    try? options?.setOption(.autoRead, value: false)
    try? options?.setOption(.maxMessagesPerRead, value: 1)
    let allocator = AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 512, maximum: Self.readAhead)
    try? options?.setOption(.recvAllocator, value: allocator)
    account = methods.begins(self)
  }

  func channelActive(context: ChannelHandlerContext) {
    if account == nil { context.close(promise: nil) } else { settle() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let account, !isRefused else { return }
    let wasAsked = isReading
    isReading = false
    backlog.append(unwrapInboundIn(data).readableBytesView, at: Clock.monotonic())
    // When the client has closed the channel reads all that is left, asked or not: what is beyond the bound is not answered.
    if !wasAsked, backlog.pending > Account.own, !account.hasRoom { drop() }
  }

  func channelReadComplete(context: ChannelHandlerContext) { settle() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
    endInput()
    settle()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    guard context.channel.isWritable else { return slow.set(Clock.monotonic() + Self.maxWait) }
    slow.set(nil)
    call?.hasRoomAgain?()
    settle()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    self.context = nil
    outlet = nil
    slow.set(nil)
    unfinished.set(nil)
    isGone = true
    endInput()
    if let call, !call.call.oneway {
      call.abandon()
      self.call = nil
    }
    settle()
  }

  /// The client says nothing more: what it drives it drives no more.
  private func endInput() {
    inputEnded = true
    driven.map { $0.device.endLease($0.token, "the driver is gone") }
    driven = nil
    if let call, let end = call.endsWithInput {
      call.cancel?()
      call.fail(end)
    }
  }

  /// There is room for more replies.
  var hasRoom: Bool { outlet?.hasRoom ?? false }

  private func giveUp() {
    log.notice("a client has not read for a minute and is let go", metadata: ["pid": "\(peer?.pid ?? 0)"])
    close()
  }

  private func refuse(_ words: String) {
    guard !isRefused else { return }
    methods.admission.complain("a client does not speak Varlink and is let go: \(words)", of: peer)
    drop()
  }

  private func drop() {
    isRefused = true
    backlog.clear()
    close()
  }

  func close() { context?.close(promise: nil) }

  // MARK: What waits

  /// Whether its calls come first: it set points under a lease that still holds, and is one of the first connections to do so.
  var isDriving: Bool { hasPrecedence && driven.map { $0.device.lease?.token == $0.token } ?? false }

  /// It has not made a call since it connected, which was before that moment.
  func isSilent(since moment: Instant) -> Bool { !hasCalled && began < moment }

  /// Does what follows from what waits now: a call to answer, input to read, a call that is not whole, or the end.
  func settle() {
    guard !isAnswering, let account else { return }
    let hasCall = hasCall()
    let more = max(0, backlog.pending - Account.own) - shared
    shared += more
    if more != 0 { account.holds(more) }
    if rest != nil || hasCall && call == nil && (hasRoom || isGone), !isQueued {
      isQueued = true
      methods.scheduler.add(self, of: account)
    }
    guard !isGone else { return hasCall || call != nil ? () : leave(account) }
    if backlog.pending > 0, !hasCall {
      if !unfinished.isSet { unfinished.set(Clock.monotonic() + Self.maxCallDuration) }
    } else {
      unfinished.set(nil)
    }
    readOn(account, hasCall: hasCall)
    if inputEnded, call == nil, !hasCall, !isBeingDecided, hasRoom { end() }
  }

  /// Whether a whole call waits. A client whose rights are not established makes short ones only.
  private func hasCall() -> Bool {
    guard !isRefused, !isBeingDecided else { return false }
    do { return try backlog.hasCall() } catch {}
    guard backlog.limit < VarlinkFraming.limit else {
      refuse("more than \(backlog.limit >> 10) KiB without an end")
      return false
    }
    isBeingDecided = true
    methods.decideLongCalls(for: self) { [weak self] missing in self?.decided(missing) }
    return hasCall()
  }

  /// Whether it may make long calls is known now, and why not.
  private func decided(_ missing: String?) {
    isBeingDecided = false
    if let missing {
      let words = "calls of more than \(backlog.limit >> 10) KiB are taken only from clients with a right: \(missing)"
      write(VarlinkReply.message(.permissionDenied(missing: words)))
      return refuse("more than \(backlog.limit >> 10) KiB without an end")
    }
    backlog.limit = VarlinkFraming.limit
    Loop.post { [weak self] in self?.settle() }
  }

  private func readOn(_ account: Account, hasCall: Bool) {
    guard !isReading, !inputEnded, !isRefused, !isBeingDecided, let context, let descriptor = outlet?.descriptor else { return }
    let isFull = hasCall ? backlog.pending >= Self.readAhead : backlog.pending > Account.own && !account.hasRoom
    guard !isFull else {
      if !hasCall { account.park(self) }
      if pausedSince == nil { pausedSince = Clock.monotonic() }
      return
    }
    // Set-points that waited meanwhile are not new ones.
    if let since = pausedSince { backlog.resumes(behind: max(0, Int(clinux_unread(descriptor))), since: since) }
    pausedSince = nil
    isReading = true
    context.read()
  }

  /// A client that has said all and got all is let go, once it can have read everything.
  private func end() {
    guard !isEnding, let context else { return }
    isEnding = true
    context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in context.close(promise: nil) }
  }

  private func leave(_ account: Account) {
    self.account = nil
    methods.admission.ended(self, of: account)
  }

  /// Takes no more than what has come: that is read and answered, then the connection ends.
  func finish() {
    guard !inputEnded, let descriptor = outlet?.descriptor else { return }
    // Whatever the client sends from now on it cannot send; the channel reads the rest, and then the end.
    shutdown(descriptor, CInt(SHUT_RD))
  }

  /// Nobody waits for a reply, as far as it can be known.
  var isAnswered: Bool { account == nil || inputEnded && !isQueued && !isBeingDecided && (call?.lasts ?? true) && !hasCall() }

  // MARK: Calls

  /// Answers one call, in its turn.
  func answerNext() {
    isQueued = false
    if let rest {
      self.rest = nil
      isAnswering = true
      rest()
      isAnswering = false
      return settle()
    }
    guard call == nil, hasRoom || isGone, !isRefused else { return }
    isAnswering = true
    do {
      // Where nobody takes a reply any more, nothing is done that wants one.
      if let (next, arrived) = try backlog.next(), next.oneway || !isGone {
        hasCalled = true
        let call = Call(next, session: self, arrived: arrived ?? Clock.monotonic())
        self.call = call
        methods.answer(call)
      }
    } catch {
      refuse((error as? VarlinkViolation)?.description ?? "\(error)")
    }
    isAnswering = false
    settle()
  }

  /// What answering the call had to wait for is there. Many may have waited for the same: each goes on in its turn.
  func goOn(_ rest: @escaping @Loop () -> Void) {
    self.rest = rest
    settle()
  }

  /// False where the client has hung up already.
  func bind(_ device: Device, _ token: String) -> Bool {
    guard !inputEnded else { return false }
    if driven?.token != token {
      driven = (device, token)
      hasPrecedence =
        methods.admission.sessions.values.count { $0 !== self && $0.hasPrecedence && $0.driven?.token == token } < Self.maxDrivers
    }
    return true
  }

  func has(_ right: Right) -> Bool {
    granted.generation == methods.accessGeneration && (granted.rights.contains(right) || granted.rights.contains(.control))
  }

  /// A call was granted; what polkit consented to counts for the connection.
  func grant(_ right: Right?) {
    if !isTrusted {
      isTrusted = true
      account.map(methods.admission.trusts)
    }
    guard let right else { return }
    if granted.generation != methods.accessGeneration { granted = ([], methods.accessGeneration) }
    granted.rights.insert(right)
  }

  /// The next call is answered in its turn: what ended this one may have more to do in its own.
  func finished(_ finished: Call) {
    guard call === finished else { return }
    call = nil
    settle()
  }

  /// The access rules have changed: what was granted under others ends.
  func accessChanged(_ answers: Accounts.Answers) {
    // A call that is just being answered was granted; what lasts is looked at again.
    guard let call, let cancel = call.cancel, let right = call.right, let missing = methods.refusal(of: right, for: peer, answers) else {
      return
    }
    cancel()
    call.fail(.permissionDenied(missing: missing))
  }

  func write(_ message: [UInt8]) { outlet?.write(message) }
}
