// The ECUs of a simulated car on a CAN interface of the kernel: each send and each received message is one frame in the kernel's form.
// An interface without hardware acknowledges every frame; what a real one would report is sent as an error frame instead.

import Protocols

/// The ECUs of a car on a bus.
public struct ECUNode: Machine {
  public let schema = Schema()
  private var bus: ECUBus
  private var frames: [(due: Instant, bytes: [UInt8])] = []
  /// The frame in flight.
  private var sending: [UInt8]?
  private var lastID: SendID = 0
  /// Since when the queue of the interface has been full.
  private var blockedSince: Instant?
  /// Until when no frame is received or sent.
  private var busOffUntil: Instant?

  private static let maxQueued = 8192
  /// How often a frame is sent again that the full queue of the interface has rejected, and for how long.
  private static let retryInterval: Nanoseconds = 2 * .millisecond
  private static let maxBlockedTime: Nanoseconds = .second

  /// Creates the ECUs. `isInstant`: without delays.
  public init(car: any Car, isInstant: Bool = false, faults: [CANFault] = []) {
    bus = ECUBus(car, isInstant: isInstant, faults: faults)
  }

  public var nextWake: Instant? { [sending == nil ? frames.first?.due : nil, bus.nextDue, busOffUntil].compactMap { $0 }.min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    if let busOffUntil, now >= busOffUntil {
      self.busOffUntil = nil
      report(.restarted, at: now)
    }
    switch input {
    case .started: bus.start(at: now)
    case .linkChanged(.main, _): (frames, sending, lastID, blockedSince) = ([], nil, lastID &+ 1, nil)
    case .received(.main, let bytes): SocketCAN.decode(bytes) { receive($0, at: now) }
    case .sent(let id, let failure): if id == lastID { sent(hasFailed: failure != nil, at: now) }
    case .perform(let id, _):
      effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated car takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    for (frame, due) in bus.takeFrames(at: now) where busOffUntil == nil { queue(frame, at: due) }
    sendNext(at: now, &effects)
  }

  /// Keeps a frame that the interface has rejected, or discards all that are due if that has lasted too long.
  private mutating func sent(hasFailed: Bool, at now: Instant) {
    guard let frame = sending else { return }
    sending = nil
    guard hasFailed else { return blockedSince = nil }
    let since = blockedSince ?? now
    if now - since < Self.maxBlockedTime {
      blockedSince = since
      frames.insert((now + Self.retryInterval, frame), at: 0)
    } else {
      blockedSince = nil
      frames.removeAll { $0.due <= now }
    }
  }

  private mutating func receive(_ frame: CANFrame, at now: Instant) {
    guard busOffUntil == nil, frame.kind == .data else { return }
    switch bus.receive(frame, at: now) {
    case .acknowledged: break
    case .unacknowledged: report(.noAcknowledgement, at: now)
    case .busOff(let until):
      report(.busOff, at: now)
      busOffUntil = until
    }
  }

  /// Sends an error frame.
  private mutating func report(_ classes: CANErrorClasses, at now: Instant) {
    let bytes = [UInt8](repeating: 0, count: CANFrame.maxCount)
    queue(CANFrame(CANIdentifier(number: classes.rawValue, is29Bit: true), .error, bytes), at: now)
  }

  private mutating func queue(_ frame: CANFrame, at due: Instant) {
    if frames.count < Self.maxQueued { frames.append((due, SocketCAN.bytes(of: frame))) }
  }

  /// Sends the next frame, unless one is in flight.
  private mutating func sendNext(at now: Instant, _ effects: inout Effects) {
    guard sending == nil, let first = frames.first, first.due <= now else { return }
    frames.removeFirst()
    (sending, lastID) = (first.bytes, lastID &+ 1)
    effects.send(.main, first.bytes, lastID)
  }
}
