// A simulated CAN adapter that speaks slcan, with a car behind it. The commands and their replies are here; ECUBus simulates the bus.
// Source: Lawicel CAN232 manual.

import Protocols

/// A simulated slcan adapter.
public struct SLCANAdapter: Machine {
  public let schema = Schema()
  private var bus: ECUBus
  private let name: String
  private let faults: [CANFault]
  private var sendQueue: SendQueue
  private var random: SeededRandom
  private var channel = SLCANChannel()
  /// Until when frames are rejected.
  private var busOffUntil: Instant?
  private var statusFlags: SLCANStatus = []

  /// The digit of 500 kbit/s, the bit rate of the cars.
  private static let carBitRate = UInt8(ascii: "6")
  private static let maxQueuedBytes = 65_536

  /// Creates an adapter. `isInstant`: without delays; `seed` determines random faults.
  public init(car: any Car = ElectricCar(), name: String? = nil, isInstant: Bool = false, faults: [CANFault] = [], seed: UInt64 = 1) {
    bus = ECUBus(car, isInstant: isInstant, faults: faults)
    self.name = name ?? "1013"
    self.faults = faults
    random = SeededRandom(seed: seed)
    sendQueue = SendQueue(baud: nil)
  }

  public var nextWake: Instant? { [sendQueue.nextDue, bus.nextDue].compactMap { $0 }.min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .started: bus.start(at: now)
    case .linkChanged(.main, .up), .linkChanged(.main, .down):
      sendQueue.reset(at: now)
      channel.reset()
    case .received(.main, let bytes): for byte in bytes { receive(byte, at: now) }
    case .sent(let id, let failure):
      sendQueue.sent(id)
      if failure != nil { sendQueue.clear(at: now) }
    case .perform(let id, _):
      effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated adapter takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    for (frame, due) in bus.takeFrames(at: now) where channel.isOpen { pass(frame, at: due) }
    sendQueue.flush(at: now, &effects)
  }

  /// Passes a frame of the bus on to the host.
  private mutating func pass(_ frame: CANFrame, at due: Instant) {
    guard sendQueue.queuedBytes < Self.maxQueuedBytes else { return }
    var text = SLCAN.text(of: frame)
    if hasFault(.garbage), random.next() % 50 == 0 { text.insert(UInt8(truncatingIfNeeded: random.next() | 0x80), at: text.count / 2) }
    sendQueue.add(text, at: due)
  }

  private func hasFault(_ kind: CANFault.Kind) -> Bool { faults.contains { $0.kind == kind } }

  private mutating func receive(_ byte: UInt8, at now: Instant) {
    guard let line = channel.receive(byte) else { return }
    let reply = run(line, at: now)
    if !hasFault(.silent) { sendQueue.add(reply, at: now) }
  }

  /// Runs a command, and returns its reply.
  private mutating func run(_ line: [UInt8], at now: Instant) -> [UInt8] {
    if let first = line.first, first == UInt8(ascii: "t") || first == UInt8(ascii: "T") { return send(line, at: now) }
    let wasOpen = channel.isOpen
    let reply = channel.run(line, version: name, status: statusFlags)
    // The flags are those since they were last read.
    if wasOpen, line.first == UInt8(ascii: "F") { statusFlags = [] }
    if !wasOpen, channel.isOpen { (busOffUntil, statusFlags) = (nil, []) }
    return reply
  }

  /// Sends a frame on the bus.
  private mutating func send(_ line: [UInt8], at now: Instant) -> [UInt8] {
    guard channel.state == .open, let frame = Self.frame(line) else { return SLCANChannel.rejected }
    if let busOffUntil, now < busOffUntil {
      statusFlags.formUnion([.errorPassive, .busError])
      return SLCANChannel.rejected
    }
    let queued: [UInt8] = [line[0] == UInt8(ascii: "t") ? UInt8(ascii: "z") : UInt8(ascii: "Z"), 0x0D]
    guard (channel.bitRate ?? Self.carBitRate) == Self.carBitRate else {
      statusFlags.insert(.busError)
      return queued
    }
    switch bus.receive(frame, at: now) {
    case .acknowledged: break
    case .unacknowledged: statusFlags.insert(.errorPassive)
    case .busOff(let until):
      busOffUntil = until
      statusFlags.formUnion([.errorPassive, .busError])
      return SLCANChannel.rejected
    }
    return queued
  }

  private static func frame(_ line: [UInt8]) -> CANFrame? {
    var frame: CANFrame?
    var decoder = SLCANDecoder()
    decoder.receive(line + [0x0D]) { if case .frame(let found) = $0 { frame = found } }
    return frame
  }
}
