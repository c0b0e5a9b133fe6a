// The lower half of the obd kind over a CAN interface: an adapter that speaks slcan, whose channel it opens, or a socket of the kernel. It
// carries one request at a time as frames (FramesExchange), finds out why a request remains unanswered, and limits the load of the bus.
// There is nothing to retarget, because each frame carries its address, and no voltage to measure.
//
//   down ─ link up ─▶ opening ─▶ ready ─ the adapter rejects frames, or the bus has errors ─▶ resting ─▶ opening
//                                  ready ─ no node acknowledges, or nothing responds ─▶ closed ─ next request ─▶ opening

struct FramesSession: CommandlessDialogue {
  private static let noVoltageMessage = "a CAN adapter does not measure it"
  private static let rejectionMessage = "the CAN adapter sends no frames (bus-off); check wiring and bit-rate: reopening its channel"
  private static let busOffMessage = "the CAN interface is bus-off; check wiring and bit rate, and set restart-ms with ip link"
  private static let quietTime: Nanoseconds = 50 * .millisecond
  /// The pause after the channel could not be opened.
  private static let restTime: Nanoseconds = 10 * .second

  private enum State: Sendable {
    case down(String)
    /// The channel is being opened, for this request or at the beginning.
    case opening(SLCANOpening, AdapterRequest?)
    /// The channel is closed until the next request.
    case closed
    /// The socket is open, which the owner is notified of next.
    case starting
    /// Requests of the owner are in flight or next.
    case ready
    case resting(until: Instant, String)
  }

  private let port: FramesPort
  private var state = State.down("link not up yet")
  private var decoder = SLCANDecoder()
  /// The request in flight.
  private var exchange: FramesExchange?
  private var statusQuery = StatusQuery()
  private var responseFailures = ResponseFailures()
  /// Until when nothing may be sent; nil if something may be sent.
  private var pausedUntil: Instant?
  private var load: BusLoad
  /// What the owner must handle, once.
  private var event = AdapterEvent.none
  private var outcome = ReplyReader.Outcome.empty
  private(set) var reader = ReplyReader()
  private(set) var traits: AdapterTraits
  private var failures = AdapterFailureCounters(silent: SLCANOpening.silentMessage, unusable: "responses on the CAN bus are unusable")
  /// Whether the adapter has replied to anything since the link came up.
  private var hasResponded = false
  /// The time that the connection to the adapter takes, there and back.
  private var latency: Nanoseconds = 0
  /// Whether the adapter acknowledges frames.
  private var acknowledges = false
  private var filters = ResponseFilters()
  private var functional = FunctionalAddressing()
  /// What error frames of the kernel have reported since the request was sent.
  private var reportedStatus: SLCANStatus = []
  /// The frames and the request of the last exchange, for messages.
  private var lastFrames: [CANFrame] = []
  private var lastCommand: [UInt8] = []
  /// The frames to send; storage that is reused.
  private var output: [CANFrame] = []

  /// `maxLoad`: the share of the bus that may be used, 0 to 1; 0: no limit.
  init(_ port: FramesPort, maxLoad: Double) {
    self.port = port
    traits = .frameInterface(nil, bitRate: port.bitRate)
    load = BusLoad(maxLoad: maxLoad, bitRate: port.bitRate)
  }

  private var isSocket: Bool { port.isSocket }

  // MARK: State

  var activity: AdapterActivity {
    switch state {
    case .down(let reason): .down(reason)
    case .opening, .starting: .busy
    case .ready, .closed: .ready
    case .resting(let until, let reason): .resting(until: until, reason)
    }
  }

  var isIdle: Bool { deadline == nil }

  var deadline: Instant? {
    switch state {
    case .opening(let opening, _): opening.deadline
    case .closed: pausedUntil
    case .ready: statusQuery.deadline ?? exchange?.deadline ?? pausedUntil
    case .down, .starting, .resting: nil
    }
  }

  // MARK: The reply

  var command: [UInt8] { lastCommand }
  var reply: [UInt8] { Array(lastFrames.map(\.candumpText).joined(separator: "\r").utf8) }
  var replyBody: ArraySlice<UInt8> { reply[...] }
  mutating func parse(learnsChecksums: Bool) -> ReplyReader.Outcome { outcome }

  // MARK: The link

  mutating func linkCameUp(baud: Int?, _ effects: inout Effects) {
    (hasResponded, acknowledges) = (false, false)
    responseFailures.reset()
    functional.reset()
    if isSocket { effects.append(.filter(.main, filters.list)) }
    beginOpening()
  }

  mutating func disconnect(_ reason: String) {
    endExchange()
    state = .down(reason)
  }

  private mutating func beginOpening() {
    endExchange()
    (decoder, statusQuery, pausedUntil) = (SLCANDecoder(), StatusQuery(), nil)
    responseFailures.frameAccepted()
    failures.reset()
    state = isSocket ? .starting : .opening(SLCANOpening(bitRate: port.bitRate), nil)
  }

  private mutating func endExchange() {
    exchange = nil
    statusQuery.cancel()
  }

  // MARK: Commands

  mutating func sendNext(at now: Instant, _ effects: inout Effects) {
    switch state {
    case .opening(var opening, let request):
      effects.send(.main, opening.next(at: now))
      state = .opening(opening, request)
    case .starting:
      traits = .frameInterface("SocketCAN", bitRate: port.bitRate)
      // The owner takes the event in the next turn.
      (state, event, pausedUntil) = (.ready, .ready, now)
    case .down, .closed, .ready, .resting: break
    }
  }

  mutating func beginSetup(at now: Instant, _ effects: inout Effects) {
    beginOpening()
    sendNext(at: now, &effects)
  }

  mutating func send(_ command: AdapterCommand, timeout: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    // A CAN adapter takes no commands of clients; they are rejected before they come here.
    guard case .request(let request) = command else { return }
    switch state {
    case .ready: begin(request, at: now, &effects)
    case .closed:
      state = .opening(SLCANOpening(bitRate: port.bitRate), request)
      sendNext(at: now, &effects)
    case .down, .opening, .starting, .resting: break
    }
  }

  private mutating func begin(_ request: AdapterRequest, at now: Instant, _ effects: inout Effects) {
    (lastCommand, reportedStatus) = (request.text, [])
    if isSocket, let reply = request.addressing.target?.reply, filters.admit(reply) { effects.append(.filter(.main, filters.list)) }
    var storage: [CANFrame] = []
    swap(&storage, &lastFrames)
    exchange = FramesExchange(
      request, functional, at: now, latency: latency, isAcknowledged: acknowledges, isAfterUnanswered: responseFailures.canPrecede(request),
      storage: storage)
    exchange?.appendDue(to: &output, at: now)
    port.send(&output, &effects)
    conclude(at: now, &effects)
  }

  mutating func resynchronise(at now: Instant, _ effects: inout Effects) {
    endExchange()
    pausedUntil = now &+ Self.quietTime
  }

  mutating func rest(until: Instant, _ reason: String, _ effects: inout Effects) {
    stop(&effects)
    endExchange()
    state = .resting(until: until, reason)
  }

  /// Closes the channel: an adapter repeats a frame that is not acknowledged until then.
  mutating func stop(_ effects: inout Effects) {
    switch state {
    case .opening, .ready: if !isSocket { effects.send(.main, SLCAN.close) }
    case .down, .closed, .starting, .resting: break
    }
  }

  mutating func apply(_ reaction: Reaction, _ effects: inout Effects) {
    if reaction.notices.contains(.vehicleResponded) { failures.reset() }
    if reaction.notices.contains(.replacedFastRequest) { failures.resetUnusable() }
  }

  // MARK: Input

  mutating func receive(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) -> AdapterArrival {
    if isSocket {
      SocketCAN.decode(bytes) { receive(.frame($0), at: now, &effects) }
      return finishInput(at: now, &effects)
    }
    // The decoder is out of `self` while it passes on its items, which change `self`.
    var decoder = SLCANDecoder()
    swap(&decoder, &self.decoder)
    decoder.receive(bytes) { receive($0, at: now, &effects) }
    swap(&decoder, &self.decoder)
    return finishInput(at: now, &effects)
  }

  private mutating func finishInput(at now: Instant, _ effects: inout Effects) -> AdapterArrival {
    port.send(&output, &effects)
    conclude(at: now, &effects)
    var arrival = AdapterArrival()
    if case .none = event {} else { arrival.noteReply() }
    return arrival
  }

  private mutating func receive(_ item: SLCANDecoder.Item, at now: Instant, _ effects: inout Effects) {
    if case .opening(var opening, let request) = state {
      let result = opening.receive(item, at: now)
      state = .opening(opening, request)
      if let result { continueOpening(result, at: now, &effects) }
      return
    }
    guard case .ready = state else { return }
    if case .unknown = item { return }
    hasResponded = true
    switch item {
    case .frame(let frame) where frame.kind == .error: errorReported(frame, at: now)
    case .frame(let frame):
      exchange?.receive(frame, &output, at: now)
      // The next frames can belong to another request.
      conclude(at: now, &effects)
    case .rejected where statusQuery.isOutstanding && !(acknowledges && exchange?.awaitsAcknowledgement ?? false):
      if statusQuery.replied(isStatus: false) { statusReceived([], at: now, &effects) }
    case .rejected where exchange != nil:
      responseFailures.frameRejected()
      queryStatus(at: now, &effects)
    case .status(let status): if statusQuery.replied(isStatus: true) { statusReceived(status, at: now, &effects) }
    case .queued:
      responseFailures.frameAccepted()
      acknowledges = true
      exchange?.acknowledged(at: now)
    // Adapters without automatic polling acknowledge a frame like a command.
    case .accepted where exchange?.awaitsAcknowledgement ?? false:
      acknowledges = true
      exchange?.acknowledged(at: now)
    case .accepted, .rejected, .identity, .unknown: break
    }
  }

  /// Handles an error frame of the kernel.
  private mutating func errorReported(_ frame: CANFrame, at now: Instant) {
    reportedStatus.formUnion(frame.errorStatus)
    guard frame.errorClasses.contains(.busOff) else { return }
    busFailed(Self.busOffMessage, at: now)
  }

  mutating func expire(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    if let pausedUntil, now >= pausedUntil { self.pausedUntil = nil }
    switch state {
    case .opening(var opening, let request):
      let result = opening.expire(at: now)
      state = .opening(opening, request)
      if let result { continueOpening(result, at: now, &effects) }
    case .ready:
      if let deadline = statusQuery.deadline, now >= deadline {
        statusQuery.expired()
        statusReceived([], at: now, &effects)
      } else if let deadline = exchange?.deadline, now >= deadline {
        exchange?.expire(&output, at: now)
        port.send(&output, &effects)
        conclude(at: now, &effects)
      }
    case .down, .starting, .closed, .resting: break
    }
    return takeEvent(&values, &effects)
  }

  mutating func replied(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    takeEvent(&values, &effects)
  }

  private mutating func takeEvent(_ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    defer { event = .none }
    if case .ready = event {
      if let name = traits.name { values.publish(.adapter, .string(name), &effects) }
      values.withdraw(.adapterVoltage, Self.noVoltageMessage, &effects)
    }
    return event
  }

  mutating func count(_ failure: AdapterFailure, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent {
    switch failures.count(failure, &values, &effects) {
    case .needsSetup: return .needs(.setUp(fault: nil))
    case .resynchronise: resynchronise(at: now, &effects)
    case .none: break
    }
    return .none
  }

  private mutating func continueOpening(_ result: SLCANOpening.Result, at now: Instant, _ effects: inout Effects) {
    guard case .opening(let opening, let request) = state else { return }
    switch result {
    case .proceed: break
    case .opened:
      (hasResponded, latency) = (hasResponded || opening.hasResponded, opening.roundTrip)
      state = .ready
      if let request { return begin(request, at: now, &effects) }
      traits = .frameInterface(opening.version.map { "slcan \($0)" } ?? "slcan", bitRate: port.bitRate)
      event = .ready
    case .failed(let reason): event = .needs(.rest(until: now &+ Self.restTime, reason))
    }
  }

  // MARK: The end of a request

  /// Ends the exchange if nothing more can follow.
  private mutating func conclude(at now: Instant, _ effects: inout Effects) {
    guard let result = exchange?.outcome(at: now) else { return }
    switch result {
    // The reply to the status query follows everything that the adapter has received, such as the responses of other ECUs.
    case .messages where statusQuery.deadline != nil && exchange?.isPhysical == false: break
    case .messages:
      responseFailures.reset()
      if let exchange { functional.concluded(exchange) }
      reader.beginReply()
      for message in exchange?.messages ?? [] { reader.add(message.bytes, from: message.source.number) }
      finish(.messages, at: now)
    case .failed(let reason): finish(.unreadable(reason), at: now)
    case .noResponse: if statusQuery.deadline == nil { queryStatus(at: now, &effects) }
    }
  }

  private mutating func finish(_ outcome: ReplyReader.Outcome, at now: Instant) {
    if let exchange {
      load.record(bits: exchange.bits, at: now)
      lastFrames = exchange.frames
    }
    endExchange()
    pausedUntil = load.pause(at: now)
    (self.outcome, event) = (outcome, .replied)
  }

  /// Asks the adapter why there is no response. One that arrives before the status still counts.
  private mutating func queryStatus(at now: Instant, _ effects: inout Effects) {
    guard hasResponded || isSocket || !responseFailures.isSilent else {
      endExchange()
      return event = .needs(.giveUp(SLCANOpening.silentMessage))
    }
    if exchange?.awaitsAcknowledgement ?? false { acknowledges = false }
    if isSocket { return statusReceived(reportedStatus, at: now, &effects) }
    guard statusQuery.isSupported else { return statusReceived([], at: now, &effects) }
    statusQuery.begin(latency: latency, at: now)
    effects.send(.main, SLCAN.status)
  }

  /// Ends the exchange without messages; the status shows why.
  private mutating func statusReceived(_ status: SLCANStatus, at now: Instant, _ effects: inout Effects) {
    if exchange?.hasResponse ?? false {
      statusQuery.cancel()
      return conclude(at: now, &effects)
    }
    if let exchange { functional.concluded(exchange) }
    let cause = responseFailures.cause(status, of: exchange)
    finish(.status(.noData), at: now)
    switch cause {
    case .noResponse: if responseFailures.isSilent { closeUntilRequest(&effects) }
    case .noAcknowledgement:
      outcome = .status(.canError)
      closeUntilRequest(&effects)
    case .lostFrames: outcome = .status(.bufferFull)
    case .busErrors:
      let rate = port.bitRate.map { " (\($0))" } ?? ""
      busFailed("errors on the CAN bus; check bit-rate\(rate), wiring and termination", at: now)
    case .rejectedFrames: busFailed(Self.rejectionMessage, at: now)
    }
  }

  /// Closes the channel, because the adapter could repeat a frame that no node acknowledges.
  private mutating func closeUntilRequest(_ effects: inout Effects) {
    guard !isSocket else { return }
    stop(&effects)
    state = .closed
  }

  private mutating func busFailed(_ reason: String, at now: Instant) {
    endExchange()
    event = .needs(.rest(until: now &+ responseFailures.nextPause(), reason))
  }
}
