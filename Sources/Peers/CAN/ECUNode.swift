// The ECUs of a simulated car on a CAN interface of the kernel: each send and each received message is one frame in the kernel's form.
// An interface without hardware acknowledges every frame; what a real one would report is sent as an error frame instead.

import Protocols

/// The ECUs of a car on a bus.
public struct ECUNode: Machine {
  public let schema = Schema()
  private var bus: ECUBus
  private var frames: [(due: Instant, bytes: [UInt8])] = []
  private var isSending = false
  private var lastID: SendID = 0
  /// Until when no frame is received or sent.
  private var busOffUntil: Instant?

  private static let maxQueued = 8192

  /// Creates the ECUs. `isInstant`: without delays.
  public init(car: any Car, isInstant: Bool = false, faults: [CANFault] = []) {
    bus = ECUBus(car, isInstant: isInstant, faults: faults)
  }

  public var nextWake: Instant? { [isSending ? nil : frames.first?.due, bus.nextDue, busOffUntil].compactMap { $0 }.min() }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    if let busOffUntil, now >= busOffUntil {
      self.busOffUntil = nil
      report(.restarted, at: now)
    }
    switch input {
    case .started: bus.start(at: now)
    case .linkChanged(.main, _): (frames, isSending, lastID) = ([], false, lastID &+ 1)
    case .received(.main, let bytes): SocketCAN.decode(bytes) { receive($0, at: now) }
    // A frame that could not be sent is lost, as on a real bus.
    case .sent(let id, _): if id == lastID { isSending = false }
    case .perform(let id, _):
      effects.append(.complete(id, .failure(.refused(code: .notSupported, "a simulated car takes no commands"))))
    case .stopping: effects.append(.stopped)
    default: break
    }
    for (frame, due) in bus.takeFrames(at: now) where busOffUntil == nil { queue(frame, at: due) }
    sendNext(at: now, &effects)
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
    guard !isSending, let first = frames.first, first.due <= now else { return }
    frames.removeFirst()
    (isSending, lastID) = (true, lastID &+ 1)
    effects.send(.main, first.bytes, lastID)
  }
}
