// The dialogue with the VESC: the link, the request and the write in flight, and whether the VESC responds. Responses are matched to the
// request by their ID. A VESC that does not respond is polled twice per second until it does.
//
//   down ── link up ──▶ ready ── request ──▶ waiting ── response or timeout ──▶ ready
//                                           │     ▲
//                          too many timeouts▼     │ next attempt
//                                           silent
//
// `down` follows every state when the link is lost.

struct VESCSession: Sendable {
  enum State: Sendable {
    /// No link, or a link that is being reset, for this reason.
    case down(String)
    /// No request is in flight.
    case ready
    /// A request is in flight.
    case waiting(Request)
    /// The VESC does not respond; the next attempt is due at this time.
    case silent(until: Instant)
  }

  struct Request: Sendable {
    let command: VESCCommand
    let sent: Instant
    let deadline: Instant
    /// How late the request was sent after its slot; nil if it had no slot.
    let lateness: Nanoseconds?
    /// Whether the next slot came before the response.
    fileprivate(set) var isOverdue = false
  }

  /// Whether the VESC responds on this link.
  enum Contact: Sendable, Equatable {
    /// The VESC has not responded yet; `timeouts` counts requests without a response.
    case none(timeouts: Int)
    /// The VESC responds; `timeouts` counts consecutive requests without a response.
    case established(timeouts: Int)
    /// The VESC no longer responds; the text is the cause. `isNoise`: only invalid data is received.
    case lost(String, isNoise: Bool)
  }

  /// A write in flight.
  struct Write: Sendable {
    enum Purpose: Sendable { case stop, setPoint, request }

    let id: SendID
    let purpose: Purpose
    let sent: Instant
  }

  /// The timeout of a request.
  static let timeout: Nanoseconds = 200 * .millisecond
  private static let writeTimeout: Nanoseconds = 5 * .second
  private static let maxTimeouts = 5
  private static let silentInterval: Nanoseconds = 500 * .millisecond
  /// The minimum number of invalid bytes since the last frame that is reported as invalid data.
  private static let minNoise = 16

  private(set) var state = State.down("the link is not up yet")
  private(set) var contact = Contact.none(timeouts: 0)
  private(set) var write: Write?
  /// Whether the daemon is shutting down.
  private(set) var isClosing = false
  private(set) var reader = VESCReader()
  private var lastSend: SendID = 0
  /// The CAN ID of a VESC that is reached through the VESC on the link, or nil for the VESC on the link itself.
  private let canID: UInt8?
  /// Whether requests count as writes in flight until the link has accepted them.
  private let tracksRequests: Bool
  /// The frames of the requests.
  private let frames: [VESCCommand: [UInt8]]

  init(_ options: VESCOptions) {
    (canID, tracksRequests) = (options.canID, options.allowsMotion)
    var frames: [VESCCommand: [UInt8]] = [:]
    for command in [VESCCommand.firmware, .values, .setupValues, .limits] { frames[command] = command.frame(canID: options.canID) }
    frames[.selectedSetupValues] = VESCCommand.selectedSetupValues.frame(VESCCommand.bytes(VESCValues.fastMask), canID: options.canID)
    frames[.pingCAN] = VESCCommand.pingCAN.frame()
    self.frames = frames
  }

  var isUp: Bool { if case .down = state { false } else { true } }
  var request: Request? { if case .waiting(let request) = state { request } else { nil } }
  var isEstablished: Bool { if case .established = contact { true } else { false } }
  /// Why the VESC cannot be used, as a message; nil if it can.
  var problem: String? { if case .lost(let message, _) = contact { message } else { nil } }
  /// When the write in flight times out.
  var writeDeadline: Instant? { write.map { $0.sent &+ Self.writeTimeout } }

  /// Why no request can be sent to the VESC now; nil if one can be sent.
  var unavailability: String? {
    if isClosing { return "the link is being closed" }
    if case .down(let reason) = state { return reason }
    return problem ?? (isEstablished ? nil : "the VESC has not responded yet")
  }

  /// The number of runs of invalid data.
  var runsOfNoise: Int { reader.runsOfNoise }

  // MARK: The link

  mutating func linkCameUp() {
    reader.reset()
    (state, contact, write) = (.ready, .none(timeouts: 0), nil)
  }

  mutating func linkWentDown(_ reason: String) {
    if isUp { contact = .none(timeouts: 0) }
    (state, write) = (.down(reason), nil)
  }

  /// Ends the session on a link that can no longer be used.
  mutating func giveUp(_ reason: String) {
    (state, contact, write) = (.down(reason), .lost(reason, isNoise: false), nil)
  }

  /// Begins the shutdown of the daemon.
  mutating func beginShutdown() { isClosing = true }

  mutating func endShutdown() {
    isClosing = false
    (state, write) = (.down("the link is being closed"), nil)
  }

  // MARK: Sending

  /// Sends a request. `frame` is its frame if it has arguments.
  mutating func sendRequest(
    _ command: VESCCommand, _ frame: [UInt8]? = nil, lateness: Nanoseconds? = nil, at now: Instant, _ effects: inout Effects
  ) {
    let timeout = command == .pingCAN ? VESCScan.timeout : Self.timeout
    state = .waiting(Request(command: command, sent: now, deadline: now &+ timeout, lateness: lateness))
    let bytes = frame ?? frames[command] ?? command.frame(canID: canID)
    // Without motion, no other write can follow before the response, so the end of the write need not be awaited.
    if tracksRequests { send(bytes, .request, at: now, &effects) } else { effects.send(.main, bytes) }
  }

  mutating func send(_ frame: [UInt8], _ purpose: Write.Purpose, at now: Instant, _ effects: inout Effects) {
    lastSend &+= 1
    write = Write(id: lastSend, purpose: purpose, sent: now)
    effects.send(.main, frame, lastSend)
  }

  /// Ends the write `id` and returns its purpose; nil if it was not in flight.
  mutating func endWrite(_ id: SendID) -> Write.Purpose? {
    guard let write, write.id == id else { return nil }
    self.write = nil
    return write.purpose
  }

  // MARK: Receiving

  /// Removes as many bytes as fit into the buffer; `nextPayload` makes room for more.
  mutating func append(_ bytes: inout ArraySlice<UInt8>) { reader.append(&bytes) }

  mutating func nextPayload() -> ArraySlice<UInt8>? { reader.next() }

  /// Drops an incomplete frame, because no data has arrived for a while, and returns a complete frame that follows it in the buffer.
  mutating func nextPayloadAfterTimeout() -> ArraySlice<UInt8>? { reader.nextAfterSilence() }

  /// The request in flight, if this payload is a response to it.
  func request(answeredBy payload: ArraySlice<UInt8>) -> Request? {
    guard let request, payload.first == request.command.rawValue else { return nil }
    return request
  }

  /// Ends the request after a valid response. Returns whether the response is the first one on this link, or after a silence.
  mutating func responseReceived() -> Bool {
    defer { (state, contact) = (.ready, .established(timeouts: 0)) }
    return !isEstablished
  }

  /// Notes that the next slot came before the response.
  mutating func pollSlotPassed() {
    guard var request else { return }
    request.isOverdue = true
    state = .waiting(request)
  }

  /// Ends the request after its timeout. Returns whether the VESC counts as silent, which takes several timeouts.
  mutating func requestTimedOut(_ command: VESCCommand) -> Bool {
    state = .ready
    // A scan takes longer than the VESC's own timeout.
    if command == .pingCAN { return false }
    switch contact {
    case .none(let timeouts):
      contact = .none(timeouts: timeouts + 1)
      return timeouts + 1 >= Self.maxTimeouts
    case .established(let timeouts):
      contact = .established(timeouts: timeouts + 1)
      return timeouts + 1 >= Self.maxTimeouts
    case .lost: return true
    }
  }

  /// Marks the VESC as silent; returns the reason as a message.
  mutating func vescStoppedResponding(at now: Instant) -> String {
    let isNoise = reader.noise >= Self.minNoise
    let location = canID.map { " \($0) on the CAN bus" } ?? ""
    let message =
      isNoise
      ? "invalid data: not a VESC, or wrong baud rate (usually 115200) or wiring"
      : "the VESC\(location) does not respond: check that its app is set to UART and that it is switched on"
    reader.reset()
    (state, contact) = (.silent(until: now &+ Self.silentInterval), .lost(message, isNoise: isNoise))
    return message
  }
}
