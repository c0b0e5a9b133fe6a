// The daemon's side of the guardian: starts the guardian process when the first link is registered, registers links, and sends heartbeats
// while a device is driven. Without a guardian no motion lease is granted. GuardianProcess is the other side.

import CLinux
import Glibc
import Logging
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime

@Loop final class Guardian {
  /// A link with last-will frames, which the guardian sends over the link's descriptor if the daemon dies or freezes. Valid until it is
  /// released.
  @Loop final class GuardedLink {
    fileprivate let number: UInt16
    fileprivate let descriptor: CInt
    fileprivate let will: LastWill
    /// Called with the reason when driving must end: the guardian has intervened, or its process has ended.
    fileprivate let endDriving: @Loop (String) -> Void
    /// The maximum time between heartbeats in ms while the device is driven; otherwise nil.
    fileprivate var deadline: UInt16?

    fileprivate init(_ number: UInt16, _ descriptor: CInt, _ will: LastWill, _ endDriving: @escaping @Loop (String) -> Void) {
      (self.number, self.descriptor, self.will, self.endDriving) = (number, descriptor, will, endDriving)
    }
  }

  /// The reason why there is no guardian; nil while it runs or is not needed.
  private(set) var unavailableReason: String?
  private let program: String
  private var links: [UInt16: GuardedLink] = [:]
  private var connection: Connection?
  private var pid: pid_t = 0
  private var started: Instant = 0
  /// The time of the last reply, while heartbeats are sent.
  private var lastReply: Instant = 0
  private var isWatching = false
  private let log = Logger(label: "vehicled")
  private lazy var heartbeat = Timer { [weak self] _ in self?.sendHeartbeats() }
  private lazy var restart = Timer { [weak self] _ in self?.start() }

  /// The period of the heartbeats while a device is driven.
  private static let interval: Nanoseconds = 50 * .millisecond
  private static let timeout: Nanoseconds = .second
  /// The minimum deadline. With a shorter one, a daemon that is merely slow would count as frozen.
  private static let minDeadline: Nanoseconds = 250 * .millisecond

  /// `program` is the program to run as the guardian. Tests use a different one.
  init(program: String = "/proc/self/exe") { self.program = program }

  /// Registers a link with its last-will frames, and starts the guardian if needed. `endDriving` gets the reason when driving must end: the
  /// guardian has stopped the vehicle, or the guardian's process has ended.
  func register(_ will: LastWill, over descriptor: CInt, endDriving: @escaping @Loop (String) -> Void) -> GuardedLink {
    var number: UInt16 = 0
    while links[number] != nil { number &+= 1 }
    let link = GuardedLink(number, descriptor, will, endDriving)
    links[number] = link
    if connection == nil { start() } else { register(link) }
    return link
  }

  /// Removes a link; the guardian closes its copy of the descriptor.
  func release(_ link: GuardedLink) {
    guard links[link.number] === link else { return }
    links[link.number] = nil
    send(.release(link: link.number))
  }

  /// Starts to send heartbeats for a link, until `unwatch`. The guardian stops the vehicle if it gets none within the deadline.
  func watch(_ link: GuardedLink, within deadline: Nanoseconds) {
    link.deadline = UInt16(clamping: max(deadline, Self.minDeadline) / .millisecond)
    sendHeartbeats()
  }

  /// Ends the heartbeats of a link: the device is no longer driven.
  func unwatch(_ link: GuardedLink) {
    link.deadline = nil
    send(.unwatch(link: link.number))
  }

  private func sendHeartbeats() {
    let driven = links.values.filter { $0.deadline != nil }
    let now = Clock.monotonic()
    // The timeout for replies starts with the first heartbeat.
    if driven.isEmpty || !isWatching { lastReply = max(lastReply, now) }
    isWatching = !driven.isEmpty
    if now - lastReply > Self.timeout { return lost("it does not respond") }
    for link in driven { send(.heartbeat(link: link.number, milliseconds: link.deadline ?? 0)) }
    heartbeat.set(driven.isEmpty ? nil : Clock.monotonic() + Self.interval)
  }

  private func register(_ link: GuardedLink) { send(.register(link: link.number, link.will), with: link.descriptor) }

  private func send(_ message: GuardianMessage, with descriptor: CInt = -1) {
    guard let connection else { return }
    let packet = message.packet
    let result = clinux_send(connection.descriptor, packet, packet.count, descriptor)
    if result != 0 { lost("cannot send to it: \(errnoMessage(-result))") }
  }

  // MARK: The process

  private func start() {
    guard connection == nil, !links.isEmpty else { return }
    OutOfMemory.exposeDaemon()
    started = Clock.monotonic()
    var ends: [CInt] = [-1, -1]
    guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0 else {
      return failed("cannot create its socket: \(errnoMessage(errno))")
    }
    let result = clinux_spawn(program, GuardianProcess.argument, ends[1], GuardianProcess.socket, &pid)
    close(ends[1])
    guard result == 0 else {
      close(ends[0])
      return failed("cannot start it: \(errnoMessage(-result))")
    }
    // The guardian has a second to start, because the system may be busy.
    lastReply = started + .second
    connection = Connection(ends[0]) { [weak self] event in
      guard let self else { return }
      lastReply = Clock.monotonic()
      switch event {
      case .reply: break
      case .intervened(let number): links[number]?.endDriving("the daemon was frozen: its guardian stopped the vehicle")
      case .closed: lost("it has ended")
      }
    }
    unavailableReason = nil
    log.debug("guardian started: pid \(pid)")
    for link in links.values { register(link) }
    sendHeartbeats()
  }

  /// Replaces a guardian that has ended or does not respond: at once, or after a second if it ran for less than a second.
  private func lost(_ reason: String) {
    guard let connection else { return }
    self.connection = nil
    connection.close()
    kill(pid, SIGKILL)
    waitpid(pid, nil, 0)
    if Clock.monotonic() - started >= .second {
      log.warning("guardian lost: \(reason); starting another")
      start()
    } else {
      failed(reason)
    }
  }

  /// Logs once that there is no guardian, ends driving, and tries to start a guardian again after a second.
  private func failed(_ reason: String) {
    if unavailableReason == nil {
      log.error("no guardian: \(reason); driving is refused, because nothing would stop a vehicle if the daemon died")
    }
    unavailableReason = "no guardian: \(reason)"
    for link in links.values where link.deadline != nil { link.endDriving("guardian lost: \(reason)") }
    restart.set(Clock.monotonic() + .second)
  }

  /// The daemon's end of the socket pair.
  @Loop private final class Connection: @Loop ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// Valid while the channel is open.
    let descriptor: CInt
    enum Event {
      /// The guardian has replied to a heartbeat.
      case reply
      /// The guardian considered the daemon frozen, and has stopped the vehicle of the link with this number.
      case intervened(UInt16)
      case closed
    }

    private var report: (@Loop (Event) -> Void)?
    private var context: ChannelHandlerContext?

    /// Takes ownership of the descriptor.
    init(_ descriptor: CInt, report: @escaping @Loop (Event) -> Void) {
      self.descriptor = descriptor
      self.report = report
      ClientBootstrap(group: Loop.group)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(self) } }
        }
        .withConnectedSocket(descriptor)
        .whenFailure { _ in Loop.post { self.end() } }
    }

    func close() {
      report = nil
      context?.close(promise: nil)
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = Array(buffer: unwrapInboundIn(data))
      report?(bytes.count == 2 ? .intervened(UInt16(bytes[0]) << 8 | UInt16(bytes[1])) : .reply)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    func channelInactive(context: ChannelHandlerContext) { end() }

    private func end() {
      let report = report
      self.report = nil
      report?(.closed)
    }
  }
}
