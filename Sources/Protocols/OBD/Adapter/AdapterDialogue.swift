// The lower half of the obd kind: whatever carries requests to the vehicle and returns its messages. The upper half (scheduler, tables,
// diagnostics, sleep policy) knows nothing else of it. It asks with a target and the bytes of a request, and gets the messages by source,
// or the reason why there are none. One request is in flight at a time. `AdapterSession` is the lower half for ELM327 adapters,
// `FramesSession` that for CAN adapters and interfaces.

/// The dialogue with an adapter. Methods that return an `AdapterEvent` report what the owner must handle.
protocol AdapterDialogue: Sendable {
  // MARK: State

  var activity: AdapterActivity { get }
  /// Whether nothing is in flight, so that the next command can be sent.
  var isIdle: Bool { get }
  /// The next deadline, or nil.
  var deadline: Instant? { get }
  /// The capabilities of the adapter.
  var traits: AdapterTraits { get }
  /// The current addressing, or nil if the adapter must be retargeted first.
  var addressing: ECUAddressing? { get }
  /// Whether a request with this addressing can be sent at once.
  func isSet(to addressing: ECUAddressing) -> Bool
  /// The commands that change the adapter to this addressing.
  func steps(to addressing: ECUAddressing) -> [ECUAddressing.Step]
  /// Whether the echo is on again: the adapter may have restarted unnoticed and lost its addressing.
  var hasLostEchoSetting: Bool { get }
  /// The reason for which no setup can succeed, if it is known better than by the last failure.
  var setupProblem: String? { get }

  // MARK: The reply

  /// The command in flight or just answered, as text with a carriage return.
  var command: [UInt8] { get }
  /// The reply to it as text, for messages.
  var reply: [UInt8] { get }
  /// The reply without an echo of the command.
  var replyBody: ArraySlice<UInt8> { get }
  /// Whether the reply acknowledges a command to the adapter itself.
  var isAcknowledged: Bool { get }
  /// Text that was received without a command, or nil: resynchronise before the next command.
  var unexpectedText: [UInt8]? { get }
  /// Whether the command in flight is STPX, which carries the header of its request.
  var usesSTPX: Bool { get }
  /// Parses the reply. `learnsChecksums`: the reply answers a poll, and so shows whether the adapter omits checksums.
  mutating func parse(learnsChecksums: Bool) -> ReplyReader.Outcome
  /// The messages of the last parsed reply.
  var reader: ReplyReader { get }

  // MARK: The link

  mutating func restore(_ stored: [String: [UInt8]])
  mutating func linkCameUp(baud: Int?, _ effects: inout Effects)
  mutating func disconnect(_ reason: String)
  /// Switches to the next baud rate on the same link. Returns false if there is none.
  mutating func tryNextBaudRate(_ effects: inout Effects) -> Bool

  // MARK: Commands

  mutating func send(_ command: AdapterCommand, timeout: Nanoseconds, at now: Instant, _ effects: inout Effects)
  /// Sends the next command of the adapter's own activity, if it has one.
  mutating func sendNext(at now: Instant, _ effects: inout Effects)
  /// Begins to initialise the adapter.
  mutating func beginSetup(at now: Instant, _ effects: inout Effects)
  /// Aborts a running command, and discards input until the adapter is quiet.
  mutating func resynchronise(at now: Instant, _ effects: inout Effects)
  /// Retargets the adapter; `fastTarget` is the ECU of the fast request (the request that is polled at the device's rate).
  mutating func retarget(to destination: ECUAddressing, fastTarget: Target?, at now: Instant, _ effects: inout Effects) -> AdapterEvent
  /// Queries the protocol that the adapter has detected.
  mutating func identifyProtocol()
  /// Measures the voltage at the OBD connector.
  mutating func measureVoltage(isProbe: Bool, at now: Instant, _ effects: inout Effects)
  mutating func enterLowPower(until: Instant)
  /// Sends nothing until this time; the adapter is reinitialised afterwards.
  mutating func rest(until: Instant, _ reason: String, _ effects: inout Effects)
  /// Leaves the adapter as the next client expects it, because the daemon stops using it.
  mutating func stop(_ effects: inout Effects)

  // MARK: Events

  mutating func receive(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) -> AdapterArrival
  /// Handles an expired deadline.
  mutating func expire(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent
  /// Handles a complete reply.
  mutating func replied(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent
  /// Handles a reply that is too long.
  mutating func overflowed(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent
  /// Handles an unsolicited status.
  mutating func statusReceived(_ status: ELMStatus, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent
  /// Counts a failure of a command of the owner, and resynchronises if necessary.
  mutating func count(_ failure: AdapterFailure, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> AdapterEvent
  /// Applies what a vehicle's reply has shown about the adapter.
  mutating func apply(_ reaction: Reaction, _ effects: inout Effects)
  /// Updates the addressing after a command of a query has changed it.
  mutating func apply(_ change: Queries.Outcome.Addressing)
  /// Records that the adapter is being reinitialised because its echo was on again.
  mutating func noteEchoHandled()
}

extension AdapterDialogue {
  var isReady: Bool { if case .ready = activity { true } else { false } }
  /// The reason why the link is down.
  var reasonDown: String? { if case .down(let reason) = activity { reason } else { nil } }
  /// The reason why queries are rejected, or nil if they are accepted, even if they must wait.
  var reasonUnavailable: String? { if case .resting(_, let reason) = activity { reason } else { reasonDown } }
}

/// What an adapter does.
enum AdapterActivity: Sendable {
  /// There is no link, or it is about to be reset, for this reason.
  case down(String)
  /// A command of the adapter's own is in flight or next: it is being set up, retargeted, or put to sleep.
  case busy
  /// The voltage is being measured.
  case measuring
  /// Commands of the owner are in flight or next.
  case ready
  /// The adapter sleeps until this time, or until a client sends a query.
  case sleeping(until: Instant)
  /// The adapter failed for this reason; nothing is sent until it is reinitialised at this time.
  case resting(until: Instant, String)
}

/// The result of received bytes.
struct AdapterArrival {
  /// Whether the reply is complete.
  private(set) var replied = false
  /// Whether more bytes arrived than a reply can have.
  private(set) var overflowed = false
  /// The status that the adapter sent without a command.
  private(set) var unsolicited: ELMStatus?

  mutating func noteReply() { replied = true }
  mutating func noteOverflow() { overflowed = true }
  mutating func note(_ status: ELMStatus) { unsolicited = status }
}

/// A command of the owner.
enum AdapterCommand: Sendable {
  case request(AdapterRequest)
  /// A command to the adapter itself, with its carriage return.
  case text([UInt8])
}

/// A request to the vehicle.
struct AdapterRequest: Sendable {
  let addressing: ECUAddressing
  /// Service and identifiers.
  let bytes: [UInt8]
  /// The request as an ELM327 takes it, with the carriage return. It can contain the expected number of frames.
  let text: [UInt8]
}

extension AdapterSession {
  var activity: AdapterActivity {
    switch state {
    case .down(let reason): .down(reason)
    case .settingUp, .retargeting, .identifyingProtocol, .enteringLowPower: .busy
    case .measuringVoltage: .measuring
    case .ready: .ready
    case .lowPower(let until): .sleeping(until: until)
    case .resting(let until, let reason): .resting(until: until, reason)
    }
  }

  var isIdle: Bool { dialogue.isIdle }
  var deadline: Instant? { dialogue.deadline }
  func isSet(to addressing: ECUAddressing) -> Bool { self.addressing == addressing }
  func steps(to addressing: ECUAddressing) -> [ECUAddressing.Step] { addressing.steps(from: self.addressing, traits) }
  var setupProblem: String? { setups.allRatesFailedMessage }

  var command: [UInt8] { dialogue.command }
  var reply: [UInt8] { dialogue.reply }
  var replyBody: ArraySlice<UInt8> { dialogue.reply[dialogue.bodyStart...] }
  var isAcknowledged: Bool { dialogue.isAcknowledged }
  var unexpectedText: [UInt8]? { dialogue.hasUnexpectedText ? dialogue.unexpectedText : nil }
  var usesSTPX: Bool { dialogue.command.starts(with: "STPX".utf8) }

  mutating func receive(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) -> AdapterArrival { receive(bytes, at: now) }

  mutating func send(_ command: AdapterCommand, timeout: Nanoseconds, at now: Instant, _ effects: inout Effects) {
    switch command {
    case .request(let request): send(request.text, timeout: timeout, at: now, &effects)
    case .text(let bytes): send(bytes, timeout: timeout, at: now, &effects)
    }
  }
}
