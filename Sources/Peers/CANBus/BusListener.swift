// A simulated CAN adapter that speaks slcan, on a bus whose nodes send what a recording or a plan contains. A channel with another bit rate
// than that of the bus receives nothing but errors. The traffic begins when the channel is first opened on a connection, and continues while
// it is closed. Source: Lawicel CAN232 manual.

import Protocols

/// Frames in blocks of equal length, which follow each other.
public struct BusTraffic: Sendable {
  /// The frames of a block with their times since its start, in order; at least one.
  typealias Block = @Sendable (Int) -> [(time: Nanoseconds, frame: CANFrame)]

  let block: Block
  /// The length of a block, more than the time of its last frame.
  let period: Nanoseconds
  /// The number of blocks; nil: they do not end.
  let count: Int?
  /// The number of blocks that are different, or that form one run.
  private let run: Int

  /// Traffic of these frames; their times must not decrease. `period`: the time after which they begin again; nil: they are sent once.
  package init(_ frames: [(time: Nanoseconds, frame: CANFrame)], period: Nanoseconds?) {
    let end = frames.last?.time ?? 0
    self.init(period: max(period ?? end + 10 * .millisecond, end + .microsecond), count: period == nil ? 1 : nil, run: 1) { _ in frames }
  }

  init(period: Nanoseconds, count: Int?, run: Int, block: @escaping Block) {
    (self.block, self.period, self.count, self.run) = (block, period, count, run)
  }

  /// The same frames, sent once or repeatedly.
  public func repeated(_ repeats: Bool) -> BusTraffic {
    BusTraffic(period: period, count: repeats ? nil : run, run: run, block: block)
  }
}

/// A simulated slcan adapter that only passes on the frames of other nodes.
public struct BusListener: Machine {
  public enum Fault: String, CaseIterable, Sendable {
    case rejectsListening = "rejects-listening"
    case ignoresListening = "ignores-listening"
    case noTraffic = "no-traffic"

    public var help: String {
      switch self {
      case .rejectsListening: "reject the command L, which opens the channel for listening only"
      case .ignoresListening: "ignore the command L, as firmware without it does: the channel stays closed"
      case .noTraffic: "send no frames: the bus is silent"
      }
    }
  }

  public let schema = Schema()
  private let traffic: BusTraffic
  /// The digit of the bus's bit rate.
  private let bitRate: UInt8
  private let faults: [Fault]
  private var sendQueue = SendQueue(baud: nil)
  private var channel = SLCANChannel()
  /// The block of frames that is sent, its number, and when it begins.
  private var frames: [(time: Nanoseconds, frame: CANFrame)] = []
  private var block = 0
  private var origin: Instant = 0
  private var next = 0

  private static let maxQueuedBytes = 262_144

  /// Creates an adapter on a bus with this bit rate in bit/s, which must be one of slcan's. The traffic begins when the channel is opened.
  package init(_ traffic: BusTraffic, bitRate: Int = 500_000, faults: [Fault] = []) {
    (self.traffic, self.faults) = (traffic, faults)
    self.bitRate = UInt8(ascii: "0") + UInt8(SLCAN.bitRates.firstIndex(of: bitRate) ?? 6)
  }

  /// The time of the next frame; nil if none follows.
  private var nextDue: Instant? {
    guard channel.isOpen, next < frames.count, receives, !faults.contains(.noTraffic) else { return nil }
    return origin &+ frames[next].time
  }

  private var receives: Bool { (channel.bitRate ?? bitRate) == bitRate }

  public var nextWake: Instant? { [sendQueue.nextDue, nextDue].compactMap { $0 }.min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, _):
      sendQueue.reset(at: now)
      channel.reset()
      frames = []
    case .received(.main, let bytes): for byte in bytes { receive(byte, at: now) }
    case .sent(let id, let failure):
      sendQueue.sent(id)
      if failure != nil { sendQueue.clear(at: now) }
    case .perform(let id, _):
      effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated adapter takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    if channel.isOpen { play(at: now) }
    sendQueue.flush(at: now, &effects)
  }

  private mutating func play(at now: Instant) {
    var text: [UInt8] = []
    while let due = nextDue, due <= now {
      if sendQueue.queuedBytes + text.count < Self.maxQueuedBytes { SLCAN.append(frames[next].frame, to: &text) }
      proceed()
    }
    sendQueue.add(text, at: now)
  }

  private mutating func proceed() {
    next += 1
    if next == frames.count, traffic.count.map({ block + 1 < $0 }) ?? true { start(block + 1, at: origin &+ traffic.period) }
  }

  /// Begins the traffic, or skips what was on the bus while the channel was closed.
  private mutating func channelOpened(at now: Instant) {
    if frames.isEmpty { start(0, at: now) }
    while next < frames.count, origin &+ frames[next].time < now { proceed() }
  }

  private mutating func start(_ block: Int, at time: Instant) {
    (self.block, origin, next) = (block, time, 0)
    frames = traffic.block(block)
  }

  private mutating func receive(_ byte: UInt8, at now: Instant) {
    if let line = channel.receive(byte) { sendQueue.add(run(line, at: now), at: now) }
  }

  /// Runs a command, and returns its reply.
  private mutating func run(_ line: [UInt8], at now: Instant) -> [UInt8] {
    if line.first == UInt8(ascii: "L"), faults.contains(.rejectsListening) { return SLCANChannel.rejected }
    if line.first == UInt8(ascii: "L"), faults.contains(.ignoresListening) { return [] }
    let wasOpen = channel.isOpen
    let reply = channel.run(line, version: "1013", status: receives ? [] : .busError)
    if !wasOpen, channel.isOpen { channelOpened(at: now) }
    return reply
  }
}

extension BusTraffic {
  /// The received frames of a log of can-utils (candump -L); throws with the number of an invalid line. `skipped`: the number of frames of
  /// CAN FD, which slcan does not have.
  public init(log: [UInt8], repeats: Bool, skipped: inout Int) throws(ValueError) {
    var frames: [(time: Nanoseconds, frame: CANFrame)] = []
    var first: Int64?
    for (number, line) in log.split(whereSeparator: isLineEnd).enumerated() {
      guard let parsed = CandumpLine(line) else {
        if CandumpLine.isCANFD(line) {
          skipped += 1
          continue
        }
        throw ValueError("line \(number + 1): not a line of candump -L, such as (1436509052.249713) can0 7E0#0322010100000000")
      }
      first = first ?? parsed.time
      // Clocks can be set while a log is written.
      let time = max((parsed.time - (first ?? 0)) * .microsecond, frames.last?.time ?? 0)
      if !parsed.isSent { frames.append((time, parsed.frame)) }
    }
    guard let last = frames.last else { throw ValueError("the log has no received frames of classical CAN") }
    self.init(frames, period: repeats ? last.time + 10 * .millisecond : nil)
  }
}
