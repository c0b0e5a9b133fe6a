// The `obd` machine: initialises an ELM327, detects the vehicle, polls one request on an absolute grid, and inserts queries and other
// requests. One command is in flight at a time; `advance` derives the next one from the state. A late byte, wrong reply or noise never
// becomes a value. Facts: ELM327 data sheet, ISO 15765-2, and the files beside this.

/// Communicates with a vehicle through an ELM327 or compatible adapter.
public struct OBDMachine: Machine {
  /// The state of the machine. Each case carries only what is valid in it.
  enum State {
    /// No link, or one about to be reset: nothing is due.
    case down(String)
    /// This step of the setup is in flight or next.
    case settingUp(step: Int)
    /// The adapter has detected the protocol and is asked for it.
    case namingBus
    /// The adapter failed; it is reinitialised then.
    case resting(until: Instant, String)
    /// The next poll waits for its slot.
    case polling
    /// A poll is in flight.
    case asking(Poll)
    /// The vehicle does not respond.
    case backingOff(Pause)
    /// A query is in flight; afterwards the pause continues, if there was one.
    case querying(OBDQuery, Pause?)
    /// The adapter is being retargeted.
    case turning(Turn)
    /// A request of the requestQueue is in flight.
    case inquiring(Int, sent: Instant)
    /// The voltage is being measured; after a probe's measurement comes a request.
    case measuring(isProbe: Bool)
    /// The adapter is being put to sleep.
    case lulling(until: Instant)
    /// The adapter sleeps until then, or until a query.
    case asleep(until: Instant)
  }

  struct Poll {
    let sent: Instant
    let lateness: Nanoseconds?
    /// The request carried a response-count digit.
    let isCounted: Bool
    /// The next slot came before the reply.
    var isOverdue = false
  }

  struct Pause {
    /// nil: until the link comes up again.
    var until: Instant?
  }

  static let timeout: Nanoseconds = 5 * .second
  static let setupTries = 3
  static let queueLimit = 16

  public var schema: Schema { values.schema }
  var values: ValueTable
  let allowRaw: Bool
  /// The custom signals.
  let signals: [CustomSignal]
  let overrides: PropertyOverrides
  var state = State.down("link not up yet")
  var dialogue = ELMDialogue()
  var line = LineSpeed()
  var reader = CANReader()
  /// Replies whose lines lacked only their checksum; nil: one had it.
  var missingChecks: Int? = 0
  var traits = AdapterTraits()
  var unanswered = UnansweredCommands()
  var pace: Pace
  var timing: Timing
  var count = FrameCount()
  var request = RecordRequest.uds
  /// The vehicle's protocol, as far as it is known.
  var bus = VehicleBus.can
  /// The polled PIDs of an SAE J1979 vehicle, as its properties are laid out.
  var fastRequest: RecordRequest?
  /// Their period, if it is not that of the device's rate.
  var fastPeriod: Nanoseconds?
  /// Why the fast request is in doubt: meanwhile the request that all ECUs support is polled.
  var doubt: String?
  /// PIDs polled together failed, and are requested one by one.
  var failsTogether = FailsTogether.no
  /// The ECU that answered the previous functional request.
  var answerer: UInt32?
  /// The protocol candidates, and the index of the current one.
  let attempts: [ProtocolCandidate]
  var attempt = 0
  /// Timing is being tuned.
  var tuning: Tuning?
  /// The stored timing.
  var keptTiming = ""
  /// The adapter of this name identifies as an STN chip but does not support STPX.
  var withoutExtended: String?
  /// The adapter's timeouts.
  var timings = Timings()
  /// The current addressing; nil: the adapter must be retargeted first.
  var addressing: ECUAddressing?
  var requestQueue = RequestQueue()
  /// When to pause polling; nil: never.
  var care: CarCare?
  /// Polling is paused, except for probes.
  var isProbing = false
  var discovery = Discovery(on: .can)
  /// Consecutive missing responses to the next discovery request.
  var discoveryMisses = 0
  /// The hash of the VIN on this connection.
  var mark: UInt32?
  /// The adapter was reinitialised on this link because its echo was on again.
  var hasHeededEcho = false
  /// The vehicle has been silent since it reported its VIN.
  var isMissed = false
  /// Detection was repeated on this connection because ECUs or PIDs were new.
  var hasChecked = false
  var vehicle = Vehicle.unknown
  let choice: VehicleChoice
  /// Only custom signals are requested beside the fast request.
  let isFastOnly: Bool
  /// The rows of the fast request, if it is not a data record.
  var primary: [PollRequest.Row] = []
  var errors = ErrorCounters()
  var counters = Counters()
  /// A confirmed clearing of trouble codes.
  var clearing: Clearing?
  /// The stored lines of earlier clearings.
  var clearings: [UInt8] = []
  var questions: [OBDQuery] = []
  /// Consecutive failed setups.
  var failedSetups = 0
  /// The request as sent, digit and carriage return included.
  var pollBytes: [UInt8] = []
  /// The stored request.
  var storedRequest: RecordRequest?
  /// The stored ECUs.
  var storedControllers: Discovery?
  /// The time of the last input.
  private(set) var lastTurn: Instant = .min

  /// The adapter's timeouts: the default one, and the one of the fast request.
  struct Timings {
    var usual = ReplyTiming.initial
    var isPagePatient = false
    /// Consecutive responses that did not need the long timeout.
    var promptAnswers = 0
  }

  struct Counters {
    var polls = 0
    /// When they were last published; `.min` before that.
    var published: Instant = .min

    func isOld(at now: Instant) -> Bool { published == .min || now &- published >= .second }
  }

  static let actions = [OBDQuery.action, codes, clear, rates, tune, frames, monitors, ecuCodes]
  static let tune = Action(
    "tune", streams: true,
    help: "Measure how long the adapter must wait for responses, store the fastest safe setting, and show before and after")
  static let codes = Action("dtc", help: "Read the trouble codes of all ECUs: stored, pending and permanent")
  static let rates = Action(
    "rates", help: "Show how often each request is sent and answered, how long it takes, and which properties it holds")

  /// Polls `rate` times per second (0: back to back); sends other than read requests only if `allowRaw`.
  init(
    rate: Double = 20, allowRaw: Bool = false, phase: Double = 0, vehicle choice: VehicleChoice = .auto, isFastOnly: Bool = false,
    signals: [CustomSignal] = [], overrides: PropertyOverrides = PropertyOverrides(), care: CarCare? = nil
  ) {
    pace = Pace(rate: rate.isFinite ? rate : 20, phase: phase)
    self.allowRaw = allowRaw
    self.choice = choice
    self.isFastOnly = isFastOnly
    self.signals = signals
    self.overrides = overrides
    self.care = care
    timing = Timing(period: pace.period)
    values = ValueTable(actions: Self.actions, signals: signals, overrides: overrides)
    attempts = choice.attempts
    layOutFirst()
    (bus, request) = (attempts[0].bus, attempts[0].request)
    writePollBytes()
  }

  public var nextWake: Instant? {
    if let deadline = dialogue.deadline {
      // Usually the reply comes before the next slot: waiting for the slot from the start saves setting the timer twice per poll.
      if case .asking(let poll) = state, pace.period > 0, !poll.isOverdue { return min(deadline, pace.due) }
      return deadline
    }
    return switch state {
    case .resting(let until, _), .asleep(let until): until
    // Due requests that do not fit wait for the next response.
    case .polling: requestQueue.nextDue > lastTurn ? min(pace.due, requestQueue.nextDue) : pace.due
    case .backingOff(let pause): pause.until
    case .down, .settingUp, .asking, .querying, .turning, .inquiring, .namingBus, .measuring, .lulling: nil
    }
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    lastTurn = now
    switch input {
    // The dialogue ends with its link: an overdue command must not be answered over a closed link.
    case .linkChanged(.main, _), .stopping: break
    default: expire(at: now, &effects)
    }
    switch input {
    case .started(let restored, _): restore(restored, &effects)
    case .linkChanged(.main, .up(_, let baud)): linkCameUp(baud: baud, &effects)
    case .linkChanged(.main, .down(let reason)): linkWentDown(reason, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id): forget(id)
    case .time(let wall): keepCodes(wall, &effects)
    case .stored(let key, let failure): keptCodes(key, failure, at: now, &effects)
    case .stopping:
      linkWentDown("link closed", &effects)
      effects.append(.stopped)
    case .wake:
      if case .asking(var poll) = state, now >= pace.due {
        poll.isOverdue = true
        state = .asking(poll)
      }
    case .linkChanged, .received, .sent, .observed, .response, .rows, .leaseBegan, .leaseEnded: break
    }
    advance(at: now, &effects)
  }

  private mutating func expire(at now: Instant, _ effects: inout Effects) {
    switch dialogue.expire(at: now) {
    case .nothing, .inStep: break
    case .timedOut: timedOut(at: now, &effects)
    case .neverQuiet: giveUp(Self.nonsense, at: now, &effects)
    }
  }

  /// Sends the next command, if the adapter is idle.
  private mutating func advance(at now: Instant, _ effects: inout Effects) {
    guard dialogue.isIdle, hasSomethingDue(at: now) else { return }
    if dialogue.isOutOfStep { return strayTextCame(at: now, &effects) }
    switch state {
    case .down, .asking, .inquiring, .measuring: break
    case .lulling: send(Self.lowPower, at: now, &effects)
    case .namingBus: send(Self.whichBus, at: now, &effects)
    case .resting, .asleep: setUpAgain(at: now, &effects)
    case .settingUp(let step): send(SetupStep.allCases[step].bytes + [carriageReturn], timeout: line.timeout, at: now, &effects)
    case .querying(let query, _): send(query.command, at: now, &effects)
    case .turning(let turn): send(turn.command, at: now, &effects)
    case .polling: run(errand(at: now), at: now, &effects)
    case .backingOff(let pause):
      if !questions.isEmpty { return beginQuery(pause, at: now, &effects) }
      if care != nil, traits.hasVoltage { return measure(isProbe: true, at: now, &effects) }
      pace.begin(at: now)
      state = .polling
      run(errand(at: now), at: now, &effects)
    }
  }

  private func hasSomethingDue(at now: Instant) -> Bool {
    switch state {
    case .down, .asking, .inquiring, .measuring: false
    case .settingUp, .querying, .turning, .namingBus, .lulling: true
    case .asleep(let until): now >= until || !questions.isEmpty
    case .resting(let until, _): now >= until
    case .polling:
      now >= pace.due || !questions.isEmpty || now >= requestQueue.nextDue || addressing != home
        || wantsVoltage(at: now, room: pace.due &- now)
    case .backingOff(let pause): pause.until.map { now >= $0 } ?? false || !questions.isEmpty
    }
  }

  var isDown: Bool { reasonDown != nil }

  /// The reason why the link is down.
  var reasonDown: String? { if case .down(let reason) = state { reason } else { nil } }

  private mutating func received(_ bytes: [UInt8], at now: Instant, _ effects: inout Effects) {
    if isDown { return }
    let arrival = dialogue.receive(bytes, at: now)
    if arrival.replied { unanswered.isAnswered(dialogue.command) }
    if arrival.replied, let status = lossInReply {
      lostSettings(status, at: now, &effects)
    } else if arrival.replied {
      switch state {
      case .asking(let poll): pollReplied(poll, at: now, &effects)
      case .settingUp(let step): setupReplied(SetupStep.allCases[step], at: now, &effects)
      case .querying(let query, let pause): queryReplied(query, pause, at: now, &effects)
      case .turning(let turn): turnReplied(turn, at: now, &effects)
      case .namingBus: busNamed(at: now, &effects)
      case .measuring(let isProbe): voltageReplied(isProbe: isProbe, at: now, &effects)
      case .lulling(let until): lullReplied(until: until, &effects)
      case .inquiring(let index, let sent): inquiryReplied(index, sent: sent, at: now, &effects)
      case .down, .resting, .polling, .backingOff, .asleep: break
      }
    } else if arrival.overflowed {
      overflowed(at: now, &effects)
    }
    if let status = arrival.unasked { heardUnasked(status, at: now, &effects) }
  }

  /// The adapter restarted instead of replying. Where data is read, the reader finds that itself.
  private var lossInReply: ELMStatus? {
    switch state {
    case .turning, .namingBus, .measuring, .lulling: break
    default: return nil
    }
    if isAcknowledged { return nil }
    for line in lines(of: dialogue.reply[dialogue.body...]) {
      if case .status(let status) = ELMLine(line), status.demand == .setUpAgain { return status }
    }
    return nil
  }

  /// The adapter sent a status unasked: it restarted, or goes to sleep.
  private mutating func heardUnasked(_ status: ELMStatus, at now: Instant, _ effects: inout Effects) {
    switch state {
    // A banner before the reset is expected.
    case .down, .resting, .settingUp(step: 0), .lulling, .asleep: return
    case .settingUp: setupFailed(status.message, isSilent: false, at: now, &effects)
    case .polling, .asking, .backingOff, .querying, .turning, .inquiring, .namingBus, .measuring: lostSettings(status, at: now, &effects)
    }
  }

  mutating func send(_ bytes: [UInt8], timeout: Nanoseconds = Self.timeout, at now: Instant, _ effects: inout Effects) {
    dialogue.begin(bytes, deadline: now &+ timeout)
    effects.send(.main, bytes)
  }

  mutating func resynchronise(at now: Instant, _ effects: inout Effects) {
    dialogue.resynchronise(at: now)
    effects.send(.main, [space])
  }
}
