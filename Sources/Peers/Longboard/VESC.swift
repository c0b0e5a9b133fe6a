// A simulated VESC in a longboard, with the safety timeout of the firmware. VESCAnswers has the replies.
// Facts: comm/commands.c and timeout.c of vedderb/bldc.

import Protocols

/// A simulated VESC with a second one on its CAN bus.
public struct VESC: Machine {
  public let schema = Schema()
  /// The firmware version.
  public let model: VESCModel
  let timing: VESCTiming
  let faults: [Fault<VESCFaultKind>]
  let origin: Instant
  /// The CAN ids of this VESC and of the second one.
  public static let number: UInt8 = 1
  public static let neighbour: UInt8 = 2

  var ride: VESCRide
  var limits = VESCRuntimeLimits()
  /// The limits forwarded to the second VESC: scale of the motor current, and speed in ERPM.
  public internal(set) var passedOn: (current: Float, erpm: Float)?
  var noise: Noise
  var poweredOn: Instant
  /// When the host last sent a command that resets the safety timeout.
  private var alive: Instant = .min
  /// The safety timeout has expired.
  private(set) var isTimedOut = false
  /// The last 64 motor commands of the host, without ALIVE.
  public private(set) var orders: [(at: Instant, order: VESCOrder)] = []
  /// The number of received commands by id.
  public private(set) var heard: [UInt8: Int] = [:]
  private var packetReader = VESCPacketReader()
  private var sendQueue = SendQueue(baud: nil)
  private var held: [UInt8] = []
  private var isConnected = false
  private var deafUntil: Instant = .min
  private var answers = 0
  private var triggered: Set<Int> = []

  /// The safety timeout, after which the motor is released.
  public static let safetyTimeout: Nanoseconds = 1000 * .millisecond

  /// Creates a VESC whose ride starts at `origin`. `seed` determines random faults.
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

  /// The speed in m/s, negative backward.
  public var speed: Double { ride.speed }
  /// The motor current in A.
  public var motorCurrent: Double { ride.motorCurrent }
  /// The limits set by the host: scale of the motor current (0 to 1), and speed in ERPM.
  public var allowed: (current: Float, erpm: Float) { (limits.now[1], limits.now[3]) }

  public var nextWake: Instant? {
    let timeout = ride.order == nil || isTimedOut ? nil : alive + VESC.safetyTimeout
    return [sendQueue.nextDue, timeout].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    let wasTimedOut = isTimedOut
    roll(to: now)
    if isTimedOut, !wasTimedOut { effects.append(.event(name: "timeout", text: "safety timeout: motor released")) }
    switch input {
    case .linkChanged(.main, .up):
      isConnected = true
      clearBuffers(at: now)
    case .linkChanged(.main, .down):
      isConnected = false
      clearBuffers(at: now)
    case .received(.main, let bytes):
      if now < deafUntil { break }
      for payload in packetReader.receive(bytes, at: now) { handlePayload(payload, at: now) }
    case .sent(let id, let failure):
      sendQueue.sent(id)
      if failure != nil { sendQueue.clear(at: now) }
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated VESC takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    if isConnected { sendQueue.flush(at: now, &effects) }
  }

  private mutating func clearBuffers(at now: Instant) {
    packetReader.clear()
    sendQueue.reset(at: now)
    held = []
  }

  /// Advances the ride to `now`, and releases the motor at the safety timeout.
  mutating func roll(to now: Instant) {
    if ride.order != nil, !isTimedOut, now >= alive + VESC.safetyTimeout {
      ride.roll(to: alive + VESC.safetyTimeout, limit: limits.ofRide)
      ride.order = .current(0)
      isTimedOut = true
    }
    ride.roll(to: now, limit: limits.ofRide)
  }

  private mutating func handlePayload(_ payload: [UInt8], at now: Instant) {
    guard let id = payload.first else { return }
    heard[id, default: 0] += 1
    if id == 34, payload.count > 2 {
      // The second VESC is like the first one, with another id and without forwarding.
      guard payload[1] == VESC.neighbour, payload[2] != 34, payload[2] != 62 else { return }
      heard[payload[2], default: 0] += 1
      return receive(Array(payload[2...]), as: VESC.neighbour, at: now)
    }
    receive(payload, as: VESC.number, at: now)
  }

  private mutating func receive(_ payload: [UInt8], as number: UInt8, at now: Instant) {
    if payload[0] == 30 { return stayAlive(at: now) }
    if let order = VESCOrder(payload), model != .v218 || payload[0] != 10 {
      stayAlive(at: now)
      ride.order = order
      orders.append((now, order))
      if orders.count > 64 { orders.removeFirst() }
      return
    }
    guard let answer = answer(to: payload, as: number, at: now) else { return }
    send(answer, at: now + (payload[0] == 62 ? timing.ping : timing.answer), from: now)
  }

  private mutating func stayAlive(at now: Instant) {
    alive = now
    isTimedOut = false
  }

  // MARK: Replies and faults

  private mutating func send(_ payload: [UInt8], at due: Instant, from now: Instant) {
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

  /// Restarts: limits and counters return to their initial values, the motor is released.
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
  /// From a request to its reply.
  public var answer: Nanoseconds = 2 * .millisecond
  /// A scan of the CAN bus.
  public var ping: Nanoseconds = 2500 * .millisecond
  /// The boot time.
  public var boot: Nanoseconds = 300 * .millisecond

  /// A VESC at 115200 baud.
  public static let real = VESCTiming()
  /// No delays, for benchmarks.
  public static let instant = VESCTiming(answer: 0, ping: 0, boot: 0)
}

extension VESCOrder {
  /// Parses a motor command; nil for other payloads.
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
