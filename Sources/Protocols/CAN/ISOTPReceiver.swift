// Receives messages of ISO 15765-2 from several senders at once. The owner sends the flow control that an event asks for, because only it
// knows the identifier of the sender's other direction. A frame out of order ends its message; frames without a beginning are ignored.

package struct ISOTPReceiver: Sendable {
  /// What a frame means.
  package enum Event: Equatable, Sendable {
    /// Nothing, or the continuation of a message.
    case none
    /// A complete message.
    case message([UInt8], from: CANIdentifier)
    /// The sender waits for a flow control, at the beginning of a message or after a block.
    case awaitsFlowControl(CANIdentifier)
    /// A message ends without being complete, for this reason.
    case failed(String, from: CANIdentifier)
    /// A flow control for the message that the owner is sending.
    case flowControl(ISOTPFlowControl, from: CANIdentifier)
  }

  /// A message of which frames are missing.
  private struct Partial: Sendable {
    let source: CANIdentifier
    let length: Int
    var bytes: [UInt8]
    var nextNumber: UInt8 = 1
    /// The consecutive frames until the next flow control; nil if there is none.
    var framesInBlock: Int?
    var deadline: Instant
  }

  private static let maxSenders = 32
  static let missingMessage = "frames missing or out of order"
  static let timeoutMessage = "incomplete message"

  package let addressing: ISOTPAddressing
  private let timeouts: ISOTPTimeouts
  /// The flow control that the owner sends.
  package let flowControl: ISOTPFlowControl
  private var partials: [Partial] = []

  package init(
    _ addressing: ISOTPAddressing = .normal, flowControl: ISOTPFlowControl = ISOTPFlowControl(), timeouts: ISOTPTimeouts = ISOTPTimeouts()
  ) {
    (self.addressing, self.flowControl, self.timeouts) = (addressing, flowControl, timeouts)
  }

  /// When the first incomplete message fails, or nil if there is none.
  package var deadline: Instant? { partials.lazy.map(\.deadline).min() }
  /// Whether a message is incomplete.
  package var isReceiving: Bool { !partials.isEmpty }

  package mutating func reset() { partials.removeAll(keepingCapacity: true) }

  /// Handles a frame.
  package mutating func receive(_ frame: CANFrame, at now: Instant) -> Event {
    guard let content = frame.isotp(addressing) else { return .none }
    let index = partials.firstIndex { $0.source == frame.identifier }
    switch content {
    case .single(let start, let count):
      // A new message ends an incomplete one (ISO 15765-2, unexpected arrival of frames).
      if let index { partials.remove(at: index) }
      return .message((start..<start + count).map { frame[$0] }, from: frame.identifier)
    case .first(let start, let length):
      if let index { partials.remove(at: index) }
      return begin(frame, start, length, at: now)
    case .consecutive(let start, let number):
      guard let index else { return .none }
      return add(frame, start, number, to: index, at: now)
    case .flowControl(let flowControl): return .flowControl(flowControl, from: frame.identifier)
    }
  }

  private mutating func begin(_ frame: CANFrame, _ start: Int, _ length: Int, at now: Instant) -> Event {
    guard partials.count < Self.maxSenders else { return .failed("too many messages at once", from: frame.identifier) }
    var partial = Partial(source: frame.identifier, length: length, bytes: [], deadline: now &+ timeouts.consecutiveFrame)
    partial.bytes.reserveCapacity(length)
    for position in start..<frame.count { partial.bytes.append(frame[position]) }
    partial.framesInBlock = flowControl.blockSize > 0 ? Int(flowControl.blockSize) : nil
    partials.append(partial)
    return .awaitsFlowControl(frame.identifier)
  }

  private mutating func add(_ frame: CANFrame, _ start: Int, _ number: UInt8, to index: Int, at now: Instant) -> Event {
    let source = partials[index].source
    let missing = partials[index].length - partials[index].bytes.count
    guard partials[index].nextNumber == number else {
      partials.remove(at: index)
      return .failed(Self.missingMessage, from: source)
    }
    let count = min(missing, CANFrame.maxCount - start)
    guard frame.count - start >= count else {
      partials.remove(at: index)
      return .failed("truncated frame", from: source)
    }
    for position in start..<start + count { partials[index].bytes.append(frame[position]) }
    guard count < missing else { return .message(partials.remove(at: index).bytes, from: source) }
    partials[index].nextNumber = (number + 1) & 15
    partials[index].deadline = now &+ timeouts.consecutiveFrame
    guard let left = partials[index].framesInBlock else { return .none }
    partials[index].framesInBlock = left == 1 ? Int(flowControl.blockSize) : left - 1
    return left == 1 ? .awaitsFlowControl(source) : .none
  }

  /// Ends the messages whose next frame is overdue, and returns their senders.
  package mutating func expire(at now: Instant) -> [CANIdentifier] {
    guard let deadline, now >= deadline else { return [] }
    defer { partials.removeAll { now >= $0.deadline } }
    return partials.filter { now >= $0.deadline }.map(\.source)
  }
}
