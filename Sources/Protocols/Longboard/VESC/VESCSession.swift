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
    /// No link, or one that is to be reset.
    case down(String)
    /// The next request waits for its slot or its cause.
    case ready
    /// A request is in flight.
    case waiting(Request)
    /// The VESC does not respond; the next attempt is due then.
    case silent(until: Instant)
  }

  struct Request: Sendable {
    let command: VESCCommand
    let sent: Instant
    let deadline: Instant
    /// Its lateness, if it had a slot.
    let lateness: Nanoseconds?
    /// The next slot came before the response.
    fileprivate(set) var isOverdue = false
  }

  /// Whether the VESC responds on this link.
  enum Contact: Sendable, Equatable {
    /// It has not responded yet; the number of requests without a response.
    case none(timeouts: Int)
    /// It responds; consecutive requests without a response.
    case established(timeouts: Int)
    /// It does not respond, or the link does not work, as a message; `isNoise`: only invalid data is received.
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
  /// Fewer invalid bytes than these are not reported.
  private static let minNoise = 16

  private(set) var state = State.down("the link is not up yet")
  private(set) var contact = Contact.none(timeouts: 0)
  private(set) var write: Write?
  /// The daemon stops.
  private(set) var isClosing = false
  private(set) var reader = VESCReader()
  private var lastSend: SendID = 0
  private let can: UInt8?
  /// A request is a write in flight until the link has accepted it.
  private let tracksRequests: Bool
  /// The frames of the requests.
  private let frames: [VESCCommand: [UInt8]]

  init(_ options: VESCOptions) {
    (can, tracksRequests) = (options.can, options.allowsMotion)
    var frames: [VESCCommand: [UInt8]] = [:]
    for command in [VESCCommand.firmware, .values, .setup, .limits] { frames[command] = command.frame(can: options.can) }
    frames[.selectSetup] = VESCCommand.selectSetup.frame(VESCCommand.bytes(VESCValues.fastMask), can: options.can)
    frames[.pingCAN] = VESCCommand.pingCAN.frame()
    self.frames = frames
  }

  var isUp: Bool { if case .down = state { false } else { true } }
  var request: Request? { if case .waiting(let request) = state { request } else { nil } }
  var isEstablished: Bool { if case .established = contact { true } else { false } }
  /// Why the VESC cannot be used, as a message.
  var problem: String? { if case .lost(let message, _) = contact { message } else { nil } }
  /// When the write in flight times out.
  var writeDeadline: Instant? { write.map { $0.sent &+ Self.writeTimeout } }

  /// Why no request can be sent to the VESC now.
  var unavailability: String? {
    if isClosing { return "the link is being closed" }
    if case .down(let reason) = state { return reason }
    return problem ?? (isEstablished ? nil : "the VESC has not responded yet")
  }

  /// Runs of bytes without a frame.
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

  /// The link cannot be used any more.
  mutating func giveUp(_ reason: String) {
    (state, contact, write) = (.down(reason), .lost(reason, isNoise: false), nil)
  }

  /// The daemon stops.
  mutating func close() { isClosing = true }

  mutating func closed() {
    isClosing = false
    (state, write) = (.down("the link is being closed"), nil)
  }

  // MARK: Sending

  /// Sends a request; `frame`: one with contents.
  mutating func ask(
    _ command: VESCCommand, _ frame: [UInt8]? = nil, lateness: Nanoseconds? = nil, at now: Instant, _ effects: inout Effects
  ) {
    let timeout = command == .pingCAN ? VESCScan.timeout : Self.timeout
    state = .waiting(Request(command: command, sent: now, deadline: now &+ timeout, lateness: lateness))
    let bytes = frame ?? frames[command] ?? command.frame(can: can)
    // Without motion nothing overtakes a request, and its response implies that the link accepted it: that saves a turn.
    if tracksRequests { send(bytes, .request, at: now, &effects) } else { effects.send(.main, bytes) }
  }

  mutating func send(_ frame: [UInt8], _ purpose: Write.Purpose, at now: Instant, _ effects: inout Effects) {
    lastSend &+= 1
    write = Write(id: lastSend, purpose: purpose, sent: now)
    effects.send(.main, frame, lastSend)
  }

  /// The link has accepted a write, or failed: returns its purpose if it was in flight.
  mutating func sent(_ id: SendID) -> Write.Purpose? {
    guard let write, write.id == id else { return nil }
    self.write = nil
    return write.purpose
  }

  // MARK: Receiving

  /// Takes as many bytes as fit; `nextPayload` makes room for more.
  mutating func take(_ bytes: inout ArraySlice<UInt8>) { reader.take(&bytes) }

  mutating func nextPayload() -> ArraySlice<UInt8>? { reader.next() }

  /// Skips a false start of a frame in the received data.
  mutating func nextPayloadAfterTimeout() -> ArraySlice<UInt8>? { reader.nextAfterSilence() }

  /// The request to which this payload responds.
  func request(answeredBy payload: ArraySlice<UInt8>) -> Request? {
    guard let request, payload.first == request.command.rawValue else { return nil }
    return request
  }

  /// The response was valid. Returns whether it is the first one on this link, or after a silence.
  mutating func responded() -> Bool {
    defer { (state, contact) = (.ready, .established(timeouts: 0)) }
    return !isEstablished
  }

  /// The next slot came before the response.
  mutating func slotPassed() {
    guard var request else { return }
    request.isOverdue = true
    state = .waiting(request)
  }

  /// The request got no response. Returns whether the VESC counts as silent: if only one response was lost, the request is repeated.
  mutating func timedOut(_ command: VESCCommand) -> Bool {
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

  /// The VESC does not respond. Returns the reason.
  mutating func fellSilent(at now: Instant) -> String {
    let isNoise = reader.noise >= Self.minNoise
    let whose = can.map { " \($0) on the CAN bus" } ?? ""
    let message =
      isNoise
      ? "invalid data: not a VESC, or wrong baud rate (usually 115200) or wiring"
      : "the VESC\(whose) does not respond: check that its app is set to UART and that it is switched on"
    reader.reset()
    (state, contact) = (.silent(until: now &+ Self.silentInterval), .lost(message, isNoise: isNoise))
    return message
  }
}
