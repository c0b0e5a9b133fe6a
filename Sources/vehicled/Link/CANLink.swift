// A CAN interface of the kernel through a raw socket, which keeps frames apart. The interface itself, with its bit rate, is set up by the
// administrator: that requires a capability that the daemon does not have.
//
// The channel only reads the first of the frames that are waiting, and the link the others, together. When the interface goes down, the
// kernel reports the error once, to a read or a write: a write that gets it closes the channel at once, because the channel relies on a read
// that gets it.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime

@Loop final class CANLink: Link, @Loop ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private weak var owner: (any LinkOwner)?
  private let interface: String
  private var context: ChannelHandlerContext?
  /// The socket, which the channel owns, while the channel is open.
  private var socket: CInt?
  private var state = CANInterfaceState()
  /// Frames that the kernel has not accepted yet, in order.
  private var queue: [(frame: [UInt8], id: SendID?)] = []
  /// Since when the kernel has accepted no frame, because the queue of the interface is full.
  private var blockedSince: Instant?
  /// Whether frames were discarded because the queue of the interface stays full.
  private var isStalled = false
  private lazy var retryTimer = Timer { [weak self] in self?.retry(at: $0) }
  /// When the frames that the kernel has dropped were counted last.
  private var dropsCountedAt: Instant = 0
  private var failure: CInt?
  /// When no frames were waiting. Those that are read later arrived later.
  private var emptiedAt: Instant = 0

  /// The interval between attempts to send. A queue of ten frames, the kernel's default, takes 3 ms at 500 kbit/s.
  private static let retryInterval: Nanoseconds = 2 * .millisecond
  /// The time after which frames that cannot be sent are discarded. A response to them would no longer be awaited.
  private static let maxBlockedTime: Nanoseconds = .second
  private static let remedy = "check bit rate, wiring and termination, and that the vehicle is on"
  private static let dropCheckInterval: Nanoseconds = .second
  /// The maximum number of frames per turn, and the maximum time between those that the owner receives together.
  private static let maxBatch = 64
  private static let maxBatchTime: Nanoseconds = .millisecond
  /// A message of the maximum length has 586 frames.
  private static let maxQueued = 1024

  init(interface: String, owner: any LinkOwner) {
    (self.interface, self.owner) = (interface, owner)
    let descriptor = clinux_can_open(interface)
    if descriptor == -EAFNOSUPPORT { requestSocket(from: CANSocketService()) } else { adopt(descriptor) }
  }

  /// A link over a socket that the service creates.
  init(interface: String, service: CANSocketService, owner: any LinkOwner) {
    (self.interface, self.owner) = (interface, owner)
    requestSocket(from: service)
  }

  /// A link over an open socket, which it owns; `descriptor` can be -errno.
  init(interface: String, descriptor: CInt, owner: any LinkOwner) {
    (self.interface, self.owner) = (interface, owner)
    adopt(descriptor)
  }

  private func requestSocket(from service: CANSocketService) {
    // systemd would log the start of the service for each attempt while the adapter is unplugged.
    guard if_nametoindex(interface) != 0 else { return adopt(-ENODEV) }
    service.request { [self] result in
      switch result {
      case .success(let descriptor) where owner == nil: _ = Glibc.close(descriptor)
      case .success(let descriptor): adopt(clinux_can_bind(descriptor, interface))
      case .failure(let error): wentDown("cannot use \(interface): \(error.description)")
      }
    }
  }

  private func adopt(_ descriptor: CInt) {
    // In a later turn, because the owner has not stored this link yet.
    guard descriptor >= 0 else { return Loop.post { self.wentDown(canInterfaceMessage(self.interface, -descriptor)) } }
    NIOPipeBootstrap(group: Loop.group)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2 * SocketCAN.frameLength))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(self) } }
      }
      .takingOwnershipOfDescriptor(input: descriptor)
      .whenComplete { result in
        Loop.post {
          switch result {
          case .success: self.cameUp(descriptor)
          case .failure(let error):
            _ = Glibc.close(descriptor)
            self.wentDown("cannot use \(self.interface): \(errorMessage(error))")
          }
        }
      }
  }

  // MARK: The state

  private func cameUp(_ descriptor: CInt) {
    // The interface may have gone down meanwhile.
    guard let context else { return }
    guard let owner else { return context.close(promise: nil) }
    socket = descriptor
    owner.linkCameUp(maximumSend: nil)
  }

  /// Closes the socket and reports that the link is down.
  private func wentDown(_ reason: String) {
    let owner = owner
    close()
    owner?.linkWentDown(reason, final: false)
  }

  func close() {
    owner = nil
    socket = nil
    queue = []
    retryTimer.set(nil)
    context?.close(promise: nil)
  }

  var details: [String: String] {
    var details: [String: String] = [:]
    if state.level != .active { details["bus"] = state.level.rawValue }
    if state.overruns > 0 { details["overruns"] = "\(state.overruns)" }
    if state.drops > 0 { details["lost-frames"] = "\(state.drops)" }
    if isStalled { details["send-queue"] = "full" }
    return details
  }

  var problem: String? {
    if isStalled {
      return "\(interface) sends nothing: its queue is full, because no other node acknowledges frames; \(Self.remedy)"
    }
    switch state.level {
    case .passive:
      return "\(interface) is error-passive: frames are damaged or not acknowledged; \(Self.remedy)"
    case .active, .warning, .busOff: break
    }
    if state.losesFrames { return "the CAN controller of \(interface) loses received frames: use an adapter with a larger buffer" }
    return state.dropsFrames ? "the kernel dropped frames of \(interface): this computer is too slow or overloaded; reduce its load" : nil
  }

  // MARK: Receiving

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let socket else { return }
    let now = Clock.monotonic()
    var frames = Array(unwrapInboundIn(data).readableBytesView)
    var first = isRecent(emptiedAt, at: now) ? now : received(socket, at: now)
    var last = first
    var count = 1
    // The frames behind a recent one are recent, too: only after a delay of the daemon is the time of each one read.
    while !isRecent(last, at: now), count < Self.maxBatch {
      let earlier = frames.count
      guard readFrames(1, socket, into: &frames) == 1 else { break }
      count += 1
      let time = received(socket, at: Clock.monotonic())
      if time - first > Self.maxBatchTime || isRecent(time, at: now) {
        guard deliver(Array(frames[..<earlier]), at: last, now) else { return }
        frames.removeFirst(earlier)
        first = time
      }
      last = time
    }
    let room = Self.maxBatch - count
    if isRecent(last, at: now), readFrames(room, socket, into: &frames) < room { emptiedAt = now }
    guard deliver(frames, at: last, now) else { return }
    if failure != nil { context.close(promise: nil) }
  }

  private func isRecent(_ time: Instant, at now: Instant) -> Bool { now - time <= Self.maxBatchTime }

  /// When the kernel received the frame that was read last.
  private func received(_ socket: CInt, at now: Instant) -> Instant { Clock.monotonic(ofWall: clinux_can_received(socket), at: now) }

  /// Appends at most `count` of the waiting frames, and returns how many. The channel does not see an error that this read has consumed.
  private func readFrames(_ count: Int, _ socket: CInt, into frames: inout [UInt8]) -> Int {
    let result = withUnsafeTemporaryAllocation(byteCount: count * SocketCAN.frameLength, alignment: 8) { buffer in
      let result = clinux_can_receive(socket, buffer.baseAddress, count)
      if result > 0 { frames += buffer.prefix(Int(result) * SocketCAN.frameLength) }
      return Int(result)
    }
    if result < 0, result != -Int(EAGAIN), result != -Int(EINTR) { failure = CInt(-result) }
    return max(result, 0)
  }

  /// Passes frames on. Error frames are also states of the link. Returns false if the link has been closed.
  private func deliver(_ frames: [UInt8], at time: Instant, _ now: Instant) -> Bool {
    var start = 0
    var errors = 0
    func deliver(to end: Int) {
      if end > start { owner?.linkReceived(start == 0 && end == frames.count ? frames : Array(frames[start..<end]), at: time) }
      start = end
    }
    for position in stride(from: 0, to: frames.count, by: SocketCAN.frameLength) where SocketCAN.isError(frames, at: position) {
      deliver(to: position)
      let end = position + SocketCAN.frameLength
      errors += SocketCAN.frameLength
      // The owner may have closed the link.
      guard socket != nil, update(Array(frames[position..<end]), at: now) else { return false }
      deliver(to: end)
    }
    if frames.count > errors { countDrops(at: now) }
    deliver(to: frames.count)
    return socket != nil
  }

  /// Handles an error frame; returns false if the link is down.
  private func update(_ bytes: [UInt8], at now: Instant) -> Bool {
    let old = (state.level, state.overruns)
    SocketCAN.decode(bytes) { state.update($0, at: now) }
    if state.level == .busOff {
      wentDown(canInterfaceMessage(interface, EHOSTDOWN))
      return false
    }
    if (state.level, state.overruns) != old { owner?.linkDetailsChanged() }
    return true
  }

  /// Counts the frames that the kernel dropped because the daemon read them too late, and ends states that are over.
  private func countDrops(at now: Instant) {
    guard let socket, now >= dropsCountedAt + Self.dropCheckInterval else { return }
    dropsCountedAt = now
    let old = state
    state.received(drops: max(0, clinux_can_drops(socket)), at: now)
    if state != old { owner?.linkDetailsChanged() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    failure = (error as? IOError)?.errnoCode
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) { wentDown(canInterfaceMessage(interface, failure ?? ENETDOWN)) }

  func setFilter(_ filters: [CANFilter]) {
    guard let socket else { return }
    let words = filters.flatMap(SocketCAN.words)
    // If the kernel rejects the filter (more than 512), all frames are received.
    _ = clinux_can_filter(socket, words, filters.count)
  }

  // MARK: Sending

  func send(_ bytes: [UInt8], id: SendID?) {
    guard socket != nil, queue.count < Self.maxQueued else { return report(id, "the queue of \(interface) is full") }
    queue.append((bytes, id))
    if queue.count == 1 { sendQueue(at: Clock.monotonic()) }
  }

  private func report(_ id: SendID?, _ failure: String?) {
    if let id { owner?.linkSent(id, failure: failure) }
  }

  private func sendQueue(at now: Instant) {
    while let socket, let (frame, id) = queue.first {
      if write(socket, frame, frame.count) < 0 {
        if errno == EINTR { continue }
        // The queue of the interface or the buffer of the socket is full. Neither makes the socket unwritable for poll(2).
        guard errno == ENOBUFS || errno == EAGAIN else { return wentDown(canInterfaceMessage(interface, errno)) }
        return wait(at: now)
      }
      queue.removeFirst()
      blockedSince = nil
      setStalled(false)
      report(id, nil)
    }
  }

  /// Keeps the frames and tries again soon, or discards them if that has lasted too long.
  private func wait(at now: Instant) {
    let since = blockedSince ?? now
    blockedSince = since
    guard now - since >= Self.maxBlockedTime else { return retryTimer.set(now + Self.retryInterval) }
    let discarded = queue
    (queue, blockedSince) = ([], nil)
    for (_, id) in discarded { report(id, "the queue of \(interface) is full") }
    setStalled(true)
  }

  private func setStalled(_ new: Bool) {
    guard isStalled != new else { return }
    isStalled = new
    owner?.linkDetailsChanged()
  }

  private func retry(at now: Instant) { sendQueue(at: now) }
}
