// A VESC with a board under it: hears a host's packets, rolls, and answers as the firmware it plays does. Its `main` link
// is the host's line seen from the other end. This file owns the line, the clock and the safety timeout; VESCAnswers what
// it says. It must never know what its host makes of it.
// Facts: comm/commands.c and timeout.c of vedderb/bldc.

import Protocols

/// A simulated VESC with a second one on its CAN bus.
public struct VESC: Machine {
  public let schema = Schema()
  /// The firmware it plays.
  public let model: VESCModel
  let timing: VESCTiming
  let faults: [Fault<VESCFaultKind>]
  let origin: Instant
  /// Numbers of this VESC and of the one on its bus.
  public static let number: UInt8 = 1
  public static let neighbour: UInt8 = 2

  var ride: VESCRide
  var limits = VESCRuntimeLimits()
  /// Parts of the motor current and of the speed in ERPM that were passed on to the second VESC.
  public internal(set) var passedOn: (current: Float, erpm: Float)?
  var noise: Noise
  var poweredOn: Instant
  /// When the host last said something that keeps the motor on.
  private var alive: Instant = .min
  /// The safety timeout has struck.
  private(set) var isTimedOut = false
  /// All that the host told the motor, ALIVE left out; the last 64.
  public private(set) var orders: [(at: Instant, order: VESCOrder)] = []
  /// How often each command came.
  public private(set) var heard: [UInt8: Int] = [:]
  private var packetReader = VESCPacketReader()
  private var sendQueue = SendQueue(baud: nil)
  private var held: [UInt8] = []
  private var isConnected = false
  private var deafUntil: Instant = .min
  private var answers = 0
  private var triggered: Set<Int> = []

  /// How long the VESC keeps its motor on without a word from the host.
  public static let safetyTimeout: Nanoseconds = 1000 * .millisecond

  /// A VESC that began its ride at this instant; `seed` chooses the noise of its faults.
  public init(
    _ model: VESCModel = .v600, timing: VESCTiming = .real, faults: [Fault<VESCFaultKind>] = [], seed: UInt64 = 1, origin: Instant = 0
  ) {
    self.model = model
    self.timing = timing
    self.faults = faults
    self.origin = origin
    poweredOn = origin
    ride = VESCRide(origin: origin, at: origin)
    noise = Noise(seed: seed)
  }

  /// m/s; negative backwards.
  public var speed: Double { ride.speed }
  /// A through the motor now.
  public var motorCurrent: Double { ride.motorCurrent }
  /// Part of the motor current that the host left (0 to 1), and of the speed in ERPM.
  public var allowed: (current: Float, erpm: Float) { (limits.now[1], limits.now[3]) }

  public var nextWake: Instant? {
    let timeout = ride.order == nil || isTimedOut ? nil : alive + VESC.safetyTimeout
    return [sendQueue.nextDue, timeout].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    let wasTimedOut = isTimedOut
    roll(to: now)
    if isTimedOut, !wasTimedOut { effects.append(.event(name: "timeout", text: "hears nobody any more and lets the motor go")) }
    switch input {
    case .linkChanged(.main, .up):
      isConnected = true
      forget(at: now)
    case .linkChanged(.main, .down):
      isConnected = false
      forget(at: now)
    case .received(.main, let bytes):
      if now < deafUntil { break }
      for payload in packetReader.hear(bytes, at: now) { obey(payload, at: now) }
    case .sent(let id, let failure):
      sendQueue.sent(id)
      if failure != nil { sendQueue.clear(at: now) }
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: "no-action", "a simulated VESC takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    if isConnected { sendQueue.flush(at: now, &effects) }
  }

  private mutating func forget(at now: Instant) {
    packetReader.clear()
    sendQueue.reset(at: now)
    held = []
  }

  /// The board rolls whether or not anybody looks, and the motor is let go when its host is silent.
  mutating func roll(to now: Instant) {
    if ride.order != nil, !isTimedOut, now >= alive + VESC.safetyTimeout {
      ride.roll(to: alive + VESC.safetyTimeout, limit: limits.ofRide)
      ride.order = .current(0)
      isTimedOut = true
    }
    ride.roll(to: now, limit: limits.ofRide)
  }

  private mutating func obey(_ payload: [UInt8], at now: Instant) {
    guard let id = payload.first else { return }
    heard[id, default: 0] += 1
    if id == 34, payload.count > 2 {
      // The second VESC is like the first, but for its number; it knows no further bus.
      guard payload[1] == VESC.neighbour, payload[2] != 34, payload[2] != 62 else { return }
      heard[payload[2], default: 0] += 1
      return hear(Array(payload[2...]), as: VESC.neighbour, at: now)
    }
    hear(payload, as: VESC.number, at: now)
  }

  private mutating func hear(_ payload: [UInt8], as number: UInt8, at now: Instant) {
    if payload[0] == 30 { return stayAlive(at: now) }
    if let order = VESCOrder(payload), model != .v218 || payload[0] != 10 {
      stayAlive(at: now)
      ride.order = order
      orders.append((now, order))
      if orders.count > 64 { orders.removeFirst() }
      return
    }
    guard let answer = answer(to: payload, as: number, at: now) else { return }
    say(answer, at: now + (payload[0] == 62 ? timing.ping : timing.answer), from: now)
  }

  private mutating func stayAlive(at now: Instant) {
    alive = now
    isTimedOut = false
  }

  // MARK: What goes wrong

  private mutating func say(_ payload: [UInt8], at due: Instant, from now: Instant) {
    answers += 1
    var packet = VESCPacketReader.packet(payload)
    for (index, fault) in faults.enumerated() where isActive(fault, index, at: now) {
      switch fault.kind {
      case .noise: packet = [UInt8(2 + noise.next() % 2)] + (0..<3).map { _ in UInt8(truncatingIfNeeded: noise.next()) } + packet
      case .wrongCRC: packet[packet.count - 2] ^= 0x55
      case .cut: packet.removeLast(packet.count / 2)
      case .silence:
        deafUntil = fault.time.map { now + $0 } ?? .max
        return
      case .coalesce:
        held += packet
        return
      case .prints: packet = VESCPacketReader.packet([21] + Array("Fault: none".utf8)) + packet
      case .reset:
        restart(at: now)
        return
      case .gibberish: packet = packet.map { _ in UInt8(truncatingIfNeeded: noise.next()) }
      }
    }
    sendQueue.add(held + packet, at: due)
    held = []
  }

  private mutating func isActive(_ fault: Fault<VESCFaultKind>, _ index: Int, at now: Instant) -> Bool {
    switch fault.moment {
    case .always: true
    case .every(let count): answers % count == 0
    case .after(let time): now - origin >= time && triggered.insert(index).inserted
    }
  }

  /// As after being switched off and on: limits and counters are as they were, the motor is free.
  mutating func restart(at now: Instant) {
    limits = VESCRuntimeLimits()
    let order = ride.order
    ride = VESCRide(origin: now, at: now)
    ride.order = order.map { _ in .current(0) }
    poweredOn = now
    deafUntil = now + timing.boot
    packetReader.clear()
  }
}

/// The times that a VESC takes.
public struct VESCTiming: Sendable, Equatable {
  /// From a question to its answer.
  public var answer: Nanoseconds = 2 * .millisecond
  /// The whole bus is asked.
  public var ping: Nanoseconds = 2500 * .millisecond
  /// From switching on to hearing.
  public var boot: Nanoseconds = 300 * .millisecond

  /// As a VESC at 115200 baud.
  public static let real = VESCTiming()
  /// Everything at once, for benches.
  public static let instant = VESCTiming(answer: 0, ping: 0, boot: 0)
}

extension VESCOrder {
  /// What a payload tells the motor, if that is what it does.
  init?(_ payload: [UInt8]) {
    guard payload.count >= 5 else { return nil }
    let number = Double(Int32(bitPattern: payload[1...4].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }))
    switch payload[0] {
    case 5: self = .duty(number / 1e5)
    case 6: self = .current(number / 1000)
    case 7: self = .brake(number / 1000)
    case 10: self = .handbrake(number / 1000)
    default: return nil
    }
  }
}
