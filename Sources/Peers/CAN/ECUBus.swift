// The CAN bus of a simulated car: reassembles requests, segments the responses of the ECUs (ISO 15765-2), and waits for flow control, which
// each ECU accepts at its physical address only. All ECUs send at once.

import Protocols

/// A car's bus as a CAN adapter sees it.
struct ECUBus: Sendable {
  /// What happens to a sent frame.
  enum Result { case acknowledged, unacknowledged, busOff(until: Instant) }

  /// A response of which only the first frame was sent.
  private struct Waiting: Sendable {
    /// The address at which the ECU receives flow control.
    let address: UInt32
    let ecu: UInt8?
    let frames: [OBDFrame]
    let pause: Nanoseconds?
  }

  private var car: any Car
  private let faults: [CANFault]
  private let timing: AdapterTiming
  private var queue: [(due: Instant, frame: CANFrame)] = []
  private var waiting: [Waiting] = []
  /// Requests that are being received, by address byte.
  private var receivers: [UInt8?: ISOTPReceiver] = [:]
  private var requestCount = 0
  private var triggered: Set<Int> = []
  /// The next frame of another node, if it babbles.
  private var babbleDue: Instant?

  private static let maxWaiting = 32
  private static let babbleInterval: Nanoseconds = 500 * .microsecond
  private static let babbleFrame = CANFrame(CANIdentifier(number: 0x123, is29Bit: false), [0xDE, 0xAD, 0xBE, 0xEF, 0, 0, 0, 0])
  /// The time of one frame at 500 kbit/s.
  private static let frameTime: Nanoseconds = 250 * .microsecond

  init(_ car: any Car, isInstant: Bool, faults: [CANFault]) {
    self.car = car
    self.faults = faults
    var timing = isInstant ? AdapterTiming.instant : .real
    if !isInstant { timing.frame = Self.frameTime }
    self.timing = timing
  }

  mutating func start(at now: Instant) {
    if hasFault(.babble) { babbleDue = now }
  }

  var nextDue: Instant? { [queue.lazy.map(\.due).min(), babbleDue].compactMap { $0 }.min() }

  /// Removes and returns the frames that are due, in order.
  mutating func takeFrames(at now: Instant) -> [(CANFrame, Instant)] {
    var frames: [(CANFrame, Instant)] = []
    if let due = babbleDue, due <= now {
      frames.append((Self.babbleFrame, now))
      babbleDue = now + Self.babbleInterval
    }
    guard let first = queue.first, first.due <= now else { return frames }
    let count = queue.prefix { $0.due <= now }.count
    frames += queue.prefix(count).map { ($0.frame, $0.due) }
    queue.removeFirst(count)
    return frames
  }

  private func hasFault(_ kind: CANFault.Kind) -> Bool { faults.contains { $0.kind == kind } }

  /// Handles a frame that the adapter sends.
  mutating func receive(_ frame: CANFrame, at now: Instant) -> Result {
    guard car.bus.isCAN, car.busState(at: now) != .dead else { return .unacknowledged }
    guard car.busState(at: now) == .awake else { return .acknowledged }
    let address = frame.identifier.number
    let ecu = car.hasAddressByte(at: address) && frame.count > 0 ? frame[0] : nil
    var receiver = receivers[ecu] ?? ISOTPReceiver(ecu.map { .extended(target: ISOTPAddressing.tester, tester: $0) } ?? .normal)
    defer { receivers[ecu] = receiver }
    switch receiver.receive(frame, at: now) {
    case .message(let request, _):
      requestCount += 1
      let active = activateFaults(at: now)
      if let fault = active.first(where: { $0.kind == .busOff }) { return .busOff(until: fault.duration.map { now + $0 } ?? .max) }
      respond(to: request, at: address, ecu, frame.identifier.is29Bit, active, now)
    // The requests of the daemon to such an ECU fit into one frame.
    case .awaitsFlowControl where ecu != nil: break
    case .awaitsFlowControl:
      let response = car.bus == .can29 ? Self.swapped(address) : address + 8
      add(receiver.flowControl.frame(to: Self.identifier(response, car.bus), padding: car.padding), due: now + timing.latency)
    case .flowControl(let flowControl, _): proceed(flowControl, at: address, ecu, now)
    case .none, .failed: break
    }
    return .acknowledged
  }

  private mutating func respond(
    to request: [UInt8], at address: UInt32, _ ecu: UInt8?, _ is29Bit: Bool, _ active: [CANFault], _ now: Instant
  ) {
    let bus = car.bus
    guard is29Bit == (bus == .can29), !active.contains(where: { $0.kind == .noResponse }),
      !(bus.isFunctional(address) && hasFault(.blocksBroadcasts))
    else { return }
    var replies = car.replies(to: request, at: address, addressByte: ecu, now)
    for fault in active {
      switch fault.kind {
      case .negativeResponse:
        replies = replies.map { $0.with(payload: Reply.negativeResponse(request[0], fault.code ?? 0x10)) }
      case .responsePending:
        replies = replies.flatMap { reply in
          var answer = reply
          answer.delay += fault.duration ?? 0
          return [reply.with(payload: Reply.negativeResponse(request[0], 0x78)), answer]
        }
      default: break
      }
    }
    for reply in replies { send(reply, to: address, ecu, active, now) }
  }

  private mutating func send(_ reply: Reply, to address: UInt32, _ ecu: UInt8?, _ active: [CANFault], _ now: Instant) {
    let bus = car.bus
    var frames = OBDFrame.segments(of: reply.payload, from: reply.id, addressByte: reply.addressByte, padding: car.padding, on: bus)
    if frames.count > 2 {
      if active.contains(where: { $0.kind == .lostFrame }) { frames.remove(at: frames.count / 2) }
      if active.contains(where: { $0.kind == .wrongSequence }) { frames.swapAt(1, 2) }
    }
    add(Self.frame(frames[0]), due: now + timing.latency(on: bus) + reply.delay + timing.frame)
    guard frames.count > 1, !hasFault(.noFlowControl), waiting.count < Self.maxWaiting else { return }
    let physical = bus.isFunctional(address) ? bus.requestAddress(forResponse: reply.id) : address
    waiting.removeAll { $0.address == physical && $0.ecu == ecu }
    waiting.append(Waiting(address: physical, ecu: ecu, frames: Array(frames.dropFirst()), pause: reply.pause))
  }

  /// Continues the response of the ECU with this address.
  private mutating func proceed(_ flowControl: ISOTPFlowControl, at address: UInt32, _ ecu: UInt8?, _ now: Instant) {
    guard flowControl.status == .proceed, let index = waiting.firstIndex(where: { $0.address == address && $0.ecu == ecu }) else { return }
    let response = waiting.remove(at: index)
    let count = flowControl.blockSize == 0 ? response.frames.count : min(Int(flowControl.blockSize), response.frames.count)
    var due = now
    for frame in response.frames.prefix(count) {
      due += max(response.pause ?? timing.frame, flowControl.separationTime)
      add(Self.frame(frame), due: due)
    }
    guard count < response.frames.count else { return }
    waiting.append(Waiting(address: address, ecu: ecu, frames: Array(response.frames.dropFirst(count)), pause: response.pause))
  }

  private mutating func add(_ frame: CANFrame, due: Instant) {
    let index = queue.lastIndex { $0.due <= due }.map { $0 + 1 } ?? 0
    queue.insert((due, frame), at: index)
  }

  private static func frame(_ frame: OBDFrame) -> CANFrame { CANFrame(identifier(frame.id, frame.bus), frame.data) }

  private static func identifier(_ id: UInt32, _ bus: DiagnosticBus) -> CANIdentifier { CANIdentifier(number: id, is29Bit: bus == .can29) }
  private static func swapped(_ address: UInt32) -> UInt32 {
    address & 0xFFFF_0000 | (address & 0xFF) << 8 | address >> 8 & 0xFF
  }

  /// Returns the faults that affect the current request. A fault with a start time is returned only once.
  private mutating func activateFaults(at now: Instant) -> [CANFault] {
    faults.enumerated().compactMap { position, fault in
      switch fault.trigger {
      case .always: return fault
      case .every(let count): return requestCount % max(1, count) == 0 ? fault : nil
      case .after(let time): return now >= car.ignition.origin + time && triggered.insert(position).inserted ? fault : nil
      }
    }
  }
}
