// A simulated VESC in a longboard, with the safety timeout of the firmware. VESCReplies builds the replies.
// Source: comm/commands.c and timeout.c of vedderb/bldc.

import Protocols

/// A simulated VESC with a second one on its CAN bus.
public struct VESC: Machine {
  public let schema = Schema()
  /// The firmware version.
  public let model: VESCModel
  let timing: VESCTiming
  let faults: [Fault<VESCFaultKind>]
  let origin: Instant
  /// The CAN ID of this VESC.
  public static let canID: UInt8 = 1
  /// The CAN ID of the second VESC.
  public static let otherCANID: UInt8 = 2

  var ride: VESCRide
  var limits = VESCRuntimeLimits()
  /// The limits that this VESC has forwarded to the second one: scale of the motor current, and speed in ERPM.
  public internal(set) var forwardedLimits: (current: Float, erpm: Float)?
  var random: SeededRandom
  var poweredOn: Instant
  /// When the host last sent a command that restarts the safety timeout.
  private var lastAlive: Instant = .min
  /// Whether the safety timeout has expired.
  private(set) var isTimedOut = false
  /// The last 64 motor commands of the host. COMM_ALIVE is not one of them.
  public private(set) var motorCommands: [(at: Instant, command: VESCMotorCommand)] = []
  /// The number of received commands by their id.
  public private(set) var receivedCommands: [UInt8: Int] = [:]
  private var packetReader = VESCPacketReader()
  private var sendQueue = SendQueue(baud: nil)
  /// A reply that the fault `coalesce` holds back until the next one.
  private var heldBack: [UInt8] = []
  private var isConnected = false
  private var silentUntil: Instant = .min
  private var replyCount = 0
  /// The indices of faults with a start time that have occurred.
  private var triggered: Set<Int> = []

  /// The time without a command or ALIVE after which the motor is released.
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
    random = SeededRandom(seed: seed)
  }

  /// The speed in m/s; negative is backwards.
  public var speed: Double { ride.speed }
  /// The motor current in A.
  public var motorCurrent: Double { ride.motorCurrent }
  /// The limits that the host has set: scale of the motor current (0 to 1), and speed in ERPM.
  public var limitsInEffect: (current: Float, erpm: Float) { (limits.values[1], limits.values[3]) }

  public var nextWake: Instant? {
    let timeout = ride.command == nil || isTimedOut ? nil : lastAlive + VESC.safetyTimeout
    return [sendQueue.nextDue, timeout].compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    let wasTimedOut = isTimedOut
    advance(to: now)
    if isTimedOut, !wasTimedOut { effects.append(.event(name: "timeout", text: "safety timeout: motor released")) }
    switch input {
    case .linkChanged(.main, .up):
      isConnected = true
      clearBuffers(at: now)
    case .linkChanged(.main, .down):
      isConnected = false
      clearBuffers(at: now)
    case .received(.main, let bytes):
      if now < silentUntil { break }
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
    heldBack = []
  }

  /// Advances the ride to `now`, and releases the motor at the safety timeout.
  mutating func advance(to now: Instant) {
    if ride.command != nil, !isTimedOut, now >= lastAlive + VESC.safetyTimeout {
      ride.advance(to: lastAlive + VESC.safetyTimeout, limit: limits.motion)
      ride.command = .current(0)
      isTimedOut = true
    }
    ride.advance(to: now, limit: limits.motion)
  }

  private mutating func handlePayload(_ payload: [UInt8], at now: Instant) {
    guard let id = payload.first else { return }
    receivedCommands[id, default: 0] += 1
    if id == 34, payload.count > 2 {  // COMM_FORWARD_CAN
      // The second VESC is like the first one, but has a different CAN ID and does not forward.
      guard payload[1] == VESC.otherCANID, payload[2] != 34, payload[2] != 62 else { return }
      receivedCommands[payload[2], default: 0] += 1
      return receive(Array(payload[2...]), as: VESC.otherCANID, at: now)
    }
    receive(payload, as: VESC.canID, at: now)
  }

  private mutating func receive(_ payload: [UInt8], as canID: UInt8, at now: Instant) {
    if payload[0] == 30 { return restartTimeout(at: now) }  // COMM_ALIVE
    if let command = VESCMotorCommand(payload), model != .v218 || payload[0] != 10 {  // not COMM_SET_HANDBRAKE
      restartTimeout(at: now)
      ride.command = command
      motorCommands.append((now, command))
      if motorCommands.count > 64 { motorCommands.removeFirst() }
      return
    }
    guard let reply = reply(to: payload, as: canID, at: now) else { return }
    send(reply, at: now + (payload[0] == 62 ? timing.ping : timing.answer), from: now)
  }

  private mutating func restartTimeout(at now: Instant) {
    lastAlive = now
    isTimedOut = false
  }

  // MARK: Replies and faults

  private mutating func send(_ payload: [UInt8], at due: Instant, from now: Instant) {
    replyCount += 1
    var packet = VESCPacketReader.packet(payload)
    for (index, fault) in faults.enumerated() where activate(fault, index, at: now) {
      switch fault.kind {
      case .noise: packet = [UInt8(2 + random.next() % 2)] + (0..<3).map { _ in UInt8(truncatingIfNeeded: random.next()) } + packet
      case .wrongCRC: packet[packet.count - 2] ^= 0x55
      case .cut: packet.removeLast(packet.count / 2)
      case .silence:
        silentUntil = fault.duration.map { now + $0 } ?? .max
        return
      case .coalesce:
        heldBack += packet
        return
      case .prints: packet = VESCPacketReader.packet([21] + Array("Fault: none".utf8)) + packet
      case .reset:
        restart(at: now)
        return
      case .gibberish: packet = packet.map { _ in UInt8(truncatingIfNeeded: random.next()) }
      }
    }
    sendQueue.add(heldBack + packet, at: due)
    heldBack = []
  }

  /// Returns whether the fault affects the current reply. A fault with a start time does so only once.
  private mutating func activate(_ fault: Fault<VESCFaultKind>, _ index: Int, at now: Instant) -> Bool {
    switch fault.trigger {
    case .always: true
    case .every(let count): replyCount % count == 0
    case .after(let time): now - origin >= time && triggered.insert(index).inserted
    }
  }

  /// Restarts: limits and counters return to their initial values, and the motor is released.
  mutating func restart(at now: Instant) {
    limits = VESCRuntimeLimits()
    let command = ride.command
    ride = VESCRide(origin: now, at: now)
    ride.command = command.map { _ in .current(0) }
    poweredOn = now
    silentUntil = now + timing.boot
    packetReader.clear()
  }
}

/// The durations of a VESC's operations.
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

extension VESCMotorCommand {
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
