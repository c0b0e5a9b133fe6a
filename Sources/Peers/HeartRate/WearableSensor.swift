// A simulated heart rate strap or foot pod of a runner, with one notification per second.
// Source: Heart Rate Service 1.0; Running Speed and Cadence Service 1.0.

import Protocols

/// A simulated sensor.
public struct WearableSensor: Machine {
  /// The type of the sensor.
  public enum Model: Sendable {
    case strap, footPod
  }

  public let schema = Schema()
  private let model: Model
  private var faults: FaultSet<SensorFault.Kind>
  private let origin: Instant
  private var random: SeededRandom
  /// When the next message is due; nil while not connected.
  private var nextMessage: Instant?
  private var messageCount = 0
  private var silentUntil: Instant = .min

  private static let period: Nanoseconds = .second

  /// Creates a sensor whose run starts at `origin`. `seed` determines the heart rate and random faults.
  public init(_ model: Model, origin: Instant = 0, faults: [SensorFault] = [], seed: UInt64 = 1) {
    (self.model, self.origin, self.faults) = (model, origin, FaultSet(faults))
    random = SeededRandom(seed: seed)
  }

  public var nextWake: Instant? { nextMessage }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    case .linkChanged(.main, .up): nextMessage = now + Self.period
    case .linkChanged(.main, .down): nextMessage = nil
    case .perform(let id, _): effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated sensor takes no commands"))))
    case .stopping:
      nextMessage = nil
      effects.append(.stopped)
    default: break
    }
    guard let due = nextMessage, now >= due else { return }
    nextMessage = max(due, now - Self.period) + Self.period
    messageCount += 1
    if let fault = activateFault(.silence, at: now) { silentUntil = fault.duration.map { now + $0 } ?? .max }
    guard now >= silentUntil else { return }
    if activateFault(.drop, at: now) != nil {
      nextMessage = nil
      return effects.append(.resetLink(.main, reason: "the sensor was switched off"))
    }
    effects.send(.main, message(at: now))
  }

  // MARK: Measurements

  /// The heart rate in bpm, which rises and falls in a cycle of 10 min, with random deviations.
  private mutating func heartRate(at seconds: Double) -> Int {
    let part = (seconds / 600).truncatingRemainder(dividingBy: 1)
    return Int(72 + 88 * (part < 0.5 ? part : 1 - part) * 2) + Int.random(in: -2...2, using: &random)
  }

  private mutating func message(at now: Instant) -> [UInt8] {
    let seconds = Double(now - origin) / 1e9
    var bytes = model == .strap ? heartRateMessage(seconds, at: now) : runningMessage(seconds)
    if activateFault(.truncated, at: now) != nil { bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random)) }
    if activateFault(.overlong, at: now) != nil { bytes.append(0) }
    return bytes
  }

  private mutating func heartRateMessage(_ seconds: Double, at now: Instant) -> [UInt8] {
    let rate = heartRate(at: seconds)
    let hasNoContact = activateFault(.noContact, at: now) != nil
    var flags: UInt8 = hasNoContact ? 0b100 : 0b110
    var bytes = [UInt8(hasNoContact ? 0 : rate)]
    if activateFault(.wide, at: now) != nil {
      flags |= 1
      bytes.append(0)
    }
    if activateFault(.energy, at: now) != nil {
      flags |= 8
      bytes += Self.bytes(Int(seconds / 6), 2)
    }
    if !hasNoContact {
      flags |= 16
      for _ in 0..<(activateFault(.intervals, at: now) != nil ? 3 : 1) { bytes += Self.bytes(60 * 1024 / rate, 2) }
    }
    return [flags] + bytes
  }

  /// A Running Speed and Cadence message: a step of 1.1 m every 0.375 s.
  private func runningMessage(_ seconds: Double) -> [UInt8] {
    let metres = seconds / 0.375 * 1.1
    return [0b111] + Self.bytes(Int(1.1 / 0.375 * 256), 2) + [160] + Self.bytes(110, 2) + Self.bytes(Int(metres * 10), 4)
  }

  private static func bytes(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  /// Returns the fault of this kind that affects the current message, if any. A fault with a start time is returned only once.
  private mutating func activateFault(_ kind: SensorFault.Kind, at now: Instant) -> SensorFault? {
    faults.due(kind, item: messageCount, after: now - origin)
  }
}
