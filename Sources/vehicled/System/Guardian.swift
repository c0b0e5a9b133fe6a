// The daemon's side of its guardian: starts the process when the first will is left, tells it what to keep, and shows
// signs of life while somebody drives. Without a guardian nobody is let drive. What it does: GuardianProcess.

import CLinux
import Glibc
import Logging
import NIOCore
import NIOPosix
import Protocols

@Loop final class Guardian {
  /// One will over one descriptor. It stands until it is released.
  @Loop final class Ward {
    fileprivate let number: UInt16
    fileprivate let descriptor: CInt
    fileprivate let will: Will
    /// Nobody may drive any more: the guardian took the daemon for frozen and has spoken, or it is gone (the reason).
    fileprivate let ended: @Loop (String) -> Void
    fileprivate var beat: UInt16?

    fileprivate init(_ number: UInt16, _ descriptor: CInt, _ will: Will, _ ended: @escaping @Loop (String) -> Void) {
      (self.number, self.descriptor, self.will, self.ended) = (number, descriptor, will, ended)
    }
  }

  /// Why nobody would stop the vehicles, in a person's words; nil while all is well, or nothing is to be guarded.
  private(set) var trouble: String?
  private let program: String
  private var wards: [UInt16: Ward] = [:]
  private var line: Line?
  private var pid: pid_t = 0
  private var started: Instant = 0
  /// When it was last heard of, while it has to answer.
  private var heard: Instant = 0
  private var isWatching = false
  private let log = Logger(label: "vehicled")
  private lazy var signs = Timer { [weak self] _ in self?.showSigns() }
  private lazy var again = Timer { [weak self] _ in self?.start() }

  /// How often the guardian hears of the daemon while somebody drives.
  private static let interval: Nanoseconds = 50 * .millisecond
  private static let timeout: Nanoseconds = .second
  /// A daemon that is merely slow is not frozen.
  private static let shortest: Nanoseconds = 250 * .millisecond

  /// A guardian that is this program, or one to be tried with.
  init(program: String = "/proc/self/exe") { self.program = program }

  /// Leaves a will. `ended` is told why driving is over: the guardian has executed the part for a frozen daemon, or is gone.
  func keep(_ will: Will, over descriptor: CInt, ended: @escaping @Loop (String) -> Void) -> Ward {
    var number: UInt16 = 0
    while wards[number] != nil { number &+= 1 }
    let ward = Ward(number, descriptor, will, ended)
    wards[number] = ward
    if line == nil { start() } else { hand(over: ward) }
    return ward
  }

  /// The will is void, and the descriptor is the daemon's alone again.
  func release(_ ward: Ward) {
    guard wards[ward.number] === ward else { return }
    wards[ward.number] = nil
    say(.release(ward: ward.number))
  }

  /// Somebody drives: the guardian stops the vehicle when the daemon does nothing for so long. Ends with `rest`.
  func watch(_ ward: Ward, within deadline: Nanoseconds) {
    ward.beat = UInt16(clamping: max(deadline, Self.shortest) / .millisecond)
    showSigns()
  }

  /// Nobody drives any more.
  func rest(_ ward: Ward) {
    ward.beat = nil
    say(.rest(ward: ward.number))
  }

  private func showSigns() {
    let driven = wards.values.filter { $0.beat != nil }
    let now = Clock.monotonic()
    // The first sign is answered before the second is due, unless nobody is there.
    if driven.isEmpty || !isWatching { heard = max(heard, now) }
    isWatching = !driven.isEmpty
    if now - heard > Self.timeout { return lost("it does not answer") }
    for ward in driven { say(.beat(ward: ward.number, milliseconds: ward.beat ?? 0)) }
    signs.set(driven.isEmpty ? nil : Clock.monotonic() + Self.interval)
  }

  private func hand(over ward: Ward) { say(.keep(ward: ward.number, ward.will), with: ward.descriptor) }

  private func say(_ message: GuardianMessage, with descriptor: CInt = -1) {
    guard let line else { return }
    let packet = message.packet
    let result = clinux_send(line.descriptor, packet, packet.count, descriptor)
    if result != 0 { lost("it does not listen: \(systemWords(-result))") }
  }

  // MARK: The process

  private func start() {
    guard line == nil, !wards.isEmpty else { return }
    OutOfMemory.exposeDaemon()
    started = Clock.monotonic()
    var ends: [CInt] = [-1, -1]
    guard socketpair(AF_UNIX, CInt(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0 else {
      return failed("no sockets: \(systemWords(errno))")
    }
    let result = clinux_spawn(program, GuardianProcess.argument, ends[1], GuardianProcess.socket, &pid)
    close(ends[1])
    guard result == 0 else {
      close(ends[0])
      return failed("cannot start it: \(systemWords(-result))")
    }
    // A busy machine may take a while to start it.
    heard = started + .second
    line = Line(ends[0]) { [weak self] word in
      guard let self else { return }
      heard = Clock.monotonic()
      switch word {
      case .sign: break
      case .spoke(let ward): wards[ward]?.ended("the daemon stood still; its guardian stopped the vehicle")
      case .end: lost("it has ended")
      }
    }
    trouble = nil
    log.debug("the guardian is process \(pid)")
    for ward in wards.values { hand(over: ward) }
    showSigns()
  }

  /// The guardian is gone. Another is started at once, unless that one lived for less than a second.
  private func lost(_ reason: String) {
    guard let line else { return }
    self.line = nil
    line.close()
    kill(pid, SIGKILL)
    waitpid(pid, nil, 0)
    if Clock.monotonic() - started >= .second {
      log.warning("the guardian is gone (\(reason)); another takes its place")
      start()
    } else {
      failed(reason)
    }
  }

  private func failed(_ reason: String) {
    if trouble == nil { log.error("there is no guardian that would stop the vehicles if the daemon died: \(reason)") }
    trouble = "there is no guardian: \(reason)"
    for ward in wards.values where ward.beat != nil { ward.ended("there is no guardian any more: \(reason)") }
    again.set(Clock.monotonic() + .second)
  }

  /// The daemon's end of the pair of sockets.
  @Loop private final class Line: @Loop ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// Valid while the channel is open.
    let descriptor: CInt
    enum Word {
      /// It lives.
      case sign
      /// It has executed a will for a frozen daemon.
      case spoke(UInt16)
      /// It is gone.
      case end
    }

    private var told: (@Loop (Word) -> Void)?
    private var context: ChannelHandlerContext?

    /// Takes the descriptor over.
    init(_ descriptor: CInt, told: @escaping @Loop (Word) -> Void) {
      self.descriptor = descriptor
      self.told = told
      ClientBootstrap(group: Loop.group)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture { try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(self) } }
        }
        .withConnectedSocket(descriptor)
        .whenFailure { _ in Loop.post { self.end() } }
    }

    func close() {
      told = nil
      context?.close(promise: nil)
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = Array(buffer: unwrapInboundIn(data))
      told?(bytes.count == 2 ? .spoke(UInt16(bytes[0]) << 8 | UInt16(bytes[1])) : .sign)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    func channelInactive(context: ChannelHandlerContext) { end() }

    private func end() {
      let told = told
      self.told = nil
      told?(.end)
    }
  }
}
