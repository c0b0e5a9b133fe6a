// One request to the vehicle as CAN frames, and the messages that answer it. Each first frame is answered with a flow control at the
// physical address of its sender. A response to another request is ignored: it can be late. Source: ISO 15765-2, ISO 15765-4 (addresses,
// P2), ISO 14229-1 (negative responses to functional requests), ISO 14229-2 (P2*, response pending).

struct FramesExchange: Sendable {
  /// How the exchange ended.
  enum Outcome: Equatable, Sendable {
    case messages
    case noResponse
    /// A message is unusable, for this reason.
    case failed(String)
  }

  /// A response, with its sender.
  struct Message: Equatable, Sendable {
    let source: CANIdentifier
    let bytes: [UInt8]
  }

  /// The maximum time until a response begins (P2, 50 ms), and as much again for the adapter.
  static let responseTime: Nanoseconds = 100 * .millisecond
  /// The maximum time until the adapter acknowledges a frame.
  static let acknowledgementTime: Nanoseconds = .second
  /// The maximum time until the response after a "response pending" (P2*).
  static let pendingTime: Nanoseconds = 5 * .second
  /// The maximum time of an exchange, and that of one with a "response pending": an ECU that repeats it, or the beginning of a message, for
  /// longer does not block the requests to others. A message of the maximum length takes 2 s over the slowest adapter.
  private static let (maxTime, maxPendingTime): (Nanoseconds, Nanoseconds) = (10 * .second, 30 * .second)
  private static let padding: UInt8 = 0
  private static let maxFrames = 128
  private static let maxMessages = 64
  private static let responsePending: UInt8 = 0x78
  /// The negative responses that an ECU does not send to a functional request: not supported, or out of range.
  private static let suppressedCodes: Set<UInt8> = [0x11, 0x12, 0x31, 0x7E, 0x7F]

  let request: AdapterRequest
  private var senders: [ISOTPSender]
  /// The engine ECUs that are asked if no ECU responds to a functional request; empty if none are, or they have been.
  private var engines: [CANIdentifier] = []
  /// The engine ECUs that were asked; if one responds, the other ECUs are asked as well.
  private var askedEngines: [CANIdentifier] = []
  /// Whether the request was repeated to the ECUs' own addresses, because none responded to the functional request.
  private(set) var usesFallback = false
  /// Whether a request to all ECUs was sent to the physical addresses of those that are known.
  private let isDistributed: Bool
  /// Whether a request to all ECUs was sent to the functional address.
  let isFunctional: Bool
  private var receiver: ISOTPReceiver
  private(set) var messages: [Message] = []
  /// The senders of "response pending", and until when their response may follow.
  private var pending: [(source: CANIdentifier, message: Message, until: Instant)] = []
  private var problem: String?
  /// Whether the first negative response can be that to an earlier request of the same service, and whether it has been ignored.
  private let isAfterUnanswered: Bool
  private(set) var hasIgnored = false
  /// When the first response must have begun.
  private var responseDeadline: Instant
  private let responseTime: Nanoseconds
  /// The time from a request until its response must have begun, or the adapter have acknowledged it.
  private let firstResponseTime: Nanoseconds
  /// The number of sent frames that the adapter has not acknowledged.
  private var unacknowledged = 0
  /// When the exchange ends, whatever has begun.
  private var end: Instant
  private let pendingEnd: Instant
  /// Whether this time has passed, so that only what has begun is awaited.
  private var hasResponseTimePassed = false
  /// The frames so far, for messages about an unusable reply.
  private(set) var frames: [CANFrame]
  /// The number of bits of all frames of the exchange.
  private(set) var bits = 0

  /// Begins the request. Before the protocol is known, a request to all ECUs is sent with both lengths of identifiers. `functional`: how it
  /// reaches them. `latency`: the time that the connection to the adapter takes. If the adapter acknowledges frames, the time for the
  /// response begins with that.
  /// `isAfterUnanswered`: whether a request of the same service to the same ECU was not answered in time just before. The frames are recorded
  /// in `storage`, which is reused.
  init(
    _ request: AdapterRequest, _ functional: FunctionalAddressing = FunctionalAddressing(), at now: Instant, latency: Nanoseconds = 0,
    isAcknowledged: Bool = false, isAfterUnanswered: Bool = false, storage: consuming [CANFrame] = []
  ) {
    self.isAfterUnanswered = isAfterUnanswered
    self.request = request
    storage.removeAll(keepingCapacity: true)
    frames = storage
    let target = request.addressing.target
    let addressBytes = target?.addressBytes ?? .normal
    var identifiers: [CANIdentifier] = if let identifier = target?.request { [identifier] } else { [.functional, .functional29Bit] }
    let isToAll = identifiers.allSatisfy { $0 == .functional || $0 == .functional29Bit }
    if isToAll {
      let route = functional.route(request.bytes, to: identifiers)
      if route.hasFallback { engines = identifiers.map(FunctionalAddressing.engine) }
      isDistributed = route.addresses != identifiers
      identifiers = route.addresses
    } else {
      isDistributed = false
    }
    isFunctional = isToAll && !isDistributed
    senders = identifiers.map { ISOTPSender(request.bytes, to: $0, addressBytes, padding: Self.padding) }
    receiver = ISOTPReceiver(addressBytes)
    let timing = request.addressing.timing
    responseTime = timing == .responsePending ? timing.duration : Self.responseTime
    firstResponseTime = isAcknowledged ? Self.acknowledgementTime : responseTime &+ latency
    responseDeadline = now &+ firstResponseTime
    (end, pendingEnd) = (now &+ Self.maxTime, now &+ Self.maxPendingTime)
  }

  private var target: Target? { request.addressing.target }

  /// Whether one ECU is asked, whose response ends the exchange.
  var isPhysical: Bool { target?.reply != nil }

  /// The physical addresses of the ECUs that have responded.
  var respondingAddresses: [CANIdentifier] {
    var addresses: [CANIdentifier] = []
    for message in messages {
      if let address = physicalAddress(of: message.source), !addresses.contains(address) { addresses.append(address) }
    }
    return addresses
  }

  /// Whether an ECU with this identifier can answer the request.
  private func accepts(_ source: CANIdentifier) -> Bool {
    if let reply = target?.reply { return source == reply }
    guard ReplyReader.isOBDSource(source.number), source.number > 0xFF else { return false }
    return target?.request.map { $0.is29Bit == source.is29Bit } ?? true
  }

  /// The identifier at which an ECU receives flow control.
  private func physicalAddress(of source: CANIdentifier) -> CANIdentifier? {
    isPhysical ? target?.request : Target(respondingFrom: source)?.request
  }

  // MARK: Frames

  /// Appends the frames that are due.
  mutating func appendDue(to output: inout [CANFrame], at now: Instant) {
    for index in senders.indices {
      while let frame = senders[index].next(at: now) { append(frame, to: &output) }
      if let failure = senders[index].failure { problem = problem ?? failure.message }
    }
  }

  private mutating func append(_ frame: CANFrame, to output: inout [CANFrame]) {
    unacknowledged += 1
    record(frame)
    output.append(frame)
  }

  private mutating func record(_ frame: CANFrame) {
    bits += frame.maxBits
    if frames.count < Self.maxFrames { frames.append(frame) }
  }

  /// Whether the adapter has not acknowledged all frames that were sent.
  var awaitsAcknowledgement: Bool { unacknowledged > 0 }

  /// Whether a response has begun.
  var hasResponse: Bool { receiver.isReceiving || !messages.isEmpty || !pending.isEmpty || problem != nil }

  /// Handles the acknowledgement of a frame by the adapter: only now, it is sent to the bus.
  mutating func acknowledged(at now: Instant) {
    guard unacknowledged > 0 else { return }
    unacknowledged -= 1
    (responseDeadline, hasResponseTimePassed) = (now &+ responseTime, false)
  }

  /// Handles a received frame, and appends what must be sent at once.
  mutating func receive(_ frame: CANFrame, _ output: inout [CANFrame], at now: Instant) {
    guard accepts(frame.identifier) else { return }
    record(frame)
    switch receiver.receive(frame, at: now) {
    case .none: break
    case .awaitsFlowControl(let source):
      guard let address = physicalAddress(of: source) else { break }
      append(receiver.flowControl.frame(to: address, receiver.addressing, padding: Self.padding), to: &output)
    case .flowControl(let flowControl, _):
      for index in senders.indices { senders[index].receive(flowControl, at: now) }
      appendDue(to: &output, at: now)
    case .failed(let reason, _): problem = problem ?? reason
    case .message(let bytes, let source):
      add(Message(source: source, bytes: bytes), at: now)
      // The engine ECU of a slow connection responds after its time: the others are asked now.
      if hasResponseTimePassed, usesFallback, beginFallback(at: now) {
        hasResponseTimePassed = false
        appendDue(to: &output, at: now)
      }
    }
  }

  private mutating func add(_ message: Message, at now: Instant) {
    guard isResponse(message.bytes) else { return }
    let isNegative = message.bytes.first == 0x7F
    if isDistributed || usesFallback {
      // As after a functional request, an ECU without support does not respond. One that was only slow responds twice.
      if isNegative && Self.suppressedCodes.contains(message.bytes[2]) || messages.contains(message) { return }
    }
    if isNegative, message.bytes[2] == Self.responsePending {
      pending.removeAll { $0.source == message.source }
      pending.append((message.source, message, now &+ Self.pendingTime))
      end = pendingEnd
    } else if isNegative, isAfterUnanswered, !hasIgnored {
      // It does not name the data that were requested.
      hasIgnored = true
    } else {
      pending.removeAll { $0.source == message.source }
      if messages.count < Self.maxMessages { messages.append(message) }
    }
  }

  /// Whether a message answers this request, not an earlier one.
  private func isResponse(_ bytes: [UInt8]) -> Bool {
    let request = request.bytes
    guard let service = request.first, let first = bytes.first else { return false }
    if first == 0x7F { return bytes.count >= 3 && bytes[1] == service }
    guard first == service &+ 0x40 else { return false }
    switch service {
    // A response to several PIDs can begin with any of them.
    case 0x01: return bytes.count < 2 || request.dropFirst().contains(bytes[1])
    case 0x06, 0x09, 0x21, 0x1A: return bytes.count < 2 || request.count < 2 || request[1] == bytes[1]
    case 0x22: return bytes.dropFirst().prefix(2).elementsEqual(request.dropFirst().prefix(2))
    default: return true
    }
  }

  // MARK: The end

  /// When the exchange must be continued or ends.
  var deadline: Instant {
    var wait = min(receiver.deadline ?? .max, end)
    for late in pending { wait = min(wait, late.until) }
    for sender in senders { wait = min(wait, sender.deadline ?? .max) }
    // While a message is being received, its own deadline applies, unless other ECUs may still begin one.
    guard wait < end else { return hasResponseTimePassed ? end : responseDeadline }
    return isPhysical || hasResponseTimePassed ? wait : min(wait, responseDeadline)
  }

  /// Handles an expired deadline, and appends the frames that are due.
  mutating func expire(_ output: inout [CANFrame], at now: Instant) {
    if now >= responseDeadline, !beginFallback(at: now) { hasResponseTimePassed = true }
    appendDue(to: &output, at: now)
    if !receiver.expire(at: now).isEmpty { problem = problem ?? ISOTPReceiver.timeoutMessage }
    // If the response never follows, the ECU is reported as busy.
    for late in pending where now >= min(late.until, end) { messages.append(late.message) }
    pending.removeAll { now >= min($0.until, end) }
    if now >= end, receiver.isReceiving || !senders.allSatisfy(\.isDone) { problem = problem ?? ISOTPReceiver.timeoutMessage }
  }

  /// Repeats the request to the next ECUs: the engine ECUs if none has responded, then the others. Returns false if there are none.
  private mutating func beginFallback(at now: Instant) -> Bool {
    let next: [CANIdentifier]
    if !engines.isEmpty, !hasResponse {
      next = engines
      (askedEngines, usesFallback) = (engines, true)
    } else {
      let responding = askedEngines.filter { engine in frames.contains { $0.identifier == engine.reply } }
      next = responding.flatMap(FunctionalAddressing.others)
      if !next.isEmpty { askedEngines = [] }
    }
    engines = []
    guard !next.isEmpty else { return false }
    senders = next.map { ISOTPSender(request.bytes, to: $0, padding: Self.padding) }
    responseDeadline = now &+ firstResponseTime
    return true
  }

  /// The outcome once nothing more can follow; nil while the exchange continues.
  func outcome(at now: Instant) -> Outcome? {
    // An unusable message of one ECU does not discard those of the others.
    if let problem, isPhysical || messages.isEmpty && isOver(at: now) { return .failed(problem) }
    if isPhysical, !messages.isEmpty { return .messages }
    guard isOver(at: now) else { return nil }
    return messages.isEmpty ? .noResponse : .messages
  }

  private func isOver(at now: Instant) -> Bool {
    if now >= end { return true }
    return now >= responseDeadline && hasResponseTimePassed && !receiver.isReceiving && pending.isEmpty
      && senders.allSatisfy { $0.isDone || $0.failure != nil }
  }
}
