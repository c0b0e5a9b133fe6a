// The `obd` machine: makes an ELM327 ready, finds out what vehicle is behind it, polls one request on an absolute grid, and lets a
// person's questions and the vehicle's other pages in between. One command is in flight at a time; what is due next follows from
// the state alone, in `advance`. A late byte, a wrong reply or noise never becomes a value.
// Facts: the ELM327 data sheet, ISO 15765-2, and the behaviour of real adapters and clones as the files beside this say.

/// Talks to a vehicle through an ELM327 or one of its relatives.
public struct OBDMachine: Machine {
  /// What the machine is at. Each case carries just what is valid in it.
  enum State {
    /// No link, or one that is to be reset: nothing is due.
    case down(String)
    /// This step of the setup is in flight or next.
    case settingUp(step: Int)
    /// The adapter has found the vehicle's bus and is asked which it is.
    case namingBus
    /// The adapter is in trouble; it is set up again then.
    case resting(until: Instant, String)
    /// The next poll waits for its slot.
    case polling
    /// A poll is in flight.
    case asking(Poll)
    /// The vehicle does not answer.
    case backingOff(Pause)
    /// A person's question is on its way; then the pause goes on, if there was one.
    case querying(OBDQuery, Pause?)
    /// The adapter is turned to another controller.
    case turning(Turn)
    /// A question of the timetable is in flight.
    case inquiring(Int, sent: Instant)
    /// The adapter is asked for the voltage; behind a probe's comes a question to the vehicle.
    case measuring(isProbe: Bool)
    /// The adapter is told to sleep.
    case lulling(until: Instant)
    /// It sleeps until then, or until somebody asks.
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

  public internal(set) var schema: Schema
  let allowRaw: Bool
  /// What the owner wants to be asked for.
  let signals: [CustomSignal]
  /// How often the owner wants what is known of vehicles.
  let wishes: PropertyWishes
  var state = State.down("link not up yet")
  var dialogue = ELMDialogue()
  var line = LineSpeed()
  var reader = CANReader()
  /// Replies whose lines lacked nothing but their check; nil: one had it.
  var missingChecks: Int? = 0
  var traits = AdapterTraits()
  var unanswered = Unanswered()
  var pace: Pace
  var timing: Timing
  var count = FrameCount()
  var request = PageRequest.uds
  /// The vehicle's bus, as far as it is known.
  var bus = VehicleBus.can
  /// The parameters that are polled of a car of the emission standard, as its properties are laid out.
  var fastRequest: PageRequest?
  /// How often they are wanted, where that is not the device's rate.
  var fastPeriod: Nanoseconds?
  /// Why the request that is polled is in doubt: meanwhile the question is asked that every controller knows.
  var doubt: String?
  /// What was polled together failed, and is asked one by one.
  var failsTogether = FailsTogether.no
  /// Who answered the request before, where everybody is asked.
  var answerer: UInt32?
  /// What is tried in turn until the vehicle answers, and where in the list we are.
  let attempts: [Attempt]
  var attempt = 0
  /// The adapter's waiting is being tried out.
  var tuning: Tuning?
  /// What the disk knows of it.
  var keptTiming = ""
  /// The adapter of this name calls itself an STN chip and does not know ST PX.
  var withoutExtended: String?
  /// How long the adapter is to wait for answers.
  var timings = Timings()
  /// How the adapter is set; nil: it is to be turned to the vehicle first.
  var aim: Aim?
  var timetable = Timetable()
  /// When the vehicle is left alone; nil: never.
  var care: CarCare?
  /// It is, but for a question now and then.
  var isProbing = false
  /// The properties that tell that somebody uses the vehicle, in the schema.
  var signsOfUse: [Int] = []
  var discovery = Discovery(on: .can)
  /// How often nobody answered the question that is asked next.
  var discoveryMisses = 0
  /// What the vehicle's number came to on this connection.
  var mark: UInt32?
  /// The adapter was set up again on this link because it echoes what it was told not to.
  var hasHeededEcho = false
  /// It has been silent since it told that.
  var isMissed = false
  /// More than was known has been found on this connection.
  var hasChecked = false
  var vehicle = Vehicle.unknown
  /// What its controllers have told of their scales on this connection.
  var scales = Scales()
  let choice: VehicleChoice
  /// Nothing that an owner has not described is asked beside the fast request.
  let isFastOnly: Bool
  /// Where the properties of our own begin in the schema.
  var ownBase = 0
  /// The rows of the request that is asked at the device's rate, where that is no page.
  var primary: [Inquiry.Row] = []
  var streaks = Streaks()
  var counters = Counters()
  /// A clearing of trouble codes that somebody confirmed.
  var clearing: Clearing?
  /// What was kept of earlier ones, a line each.
  var clearings: [UInt8] = []
  /// How fast polling says that motor, vehicle and engine are.
  var polled = Motion.Polled()
  var questions: [OBDQuery] = []
  /// Setups that failed one after the other.
  var failedSetups = 0
  /// The request as it goes out, digit and carriage return included.
  var pollBytes: [UInt8] = []
  /// The request that the disk knows.
  var storedRequest: PageRequest?
  /// The controllers that the disk knows.
  var storedControllers: Discovery?
  /// Why each property was last said to be absent, so that it is said once.
  var said: [Absence] = []
  /// When the last input came.
  private(set) var lastTurn: Instant = .min
  private(set) var status = ""
  private(set) var fault: String?

  /// How long the adapter is to wait: as a rule, and for the request that is polled.
  struct Timings {
    var usual = ReplyTiming.initial
    var isPagePatient = false
    /// Answers in a row, while it is, that needed no patience.
    var promptAnswers = 0
  }

  struct Counters {
    var polls = 0
    var timeouts = 0
    var badReplies = 0
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

  /// A machine that polls `rate` times a second (0: back to back) and sends what is no read request only if it may.
  init(
    rate: Double = 20, allowRaw: Bool = false, phase: Double = 0, vehicle choice: VehicleChoice = .auto, isFastOnly: Bool = false,
    signals: [CustomSignal] = [], wishes: PropertyWishes = PropertyWishes(), care: CarCare? = nil
  ) {
    pace = Pace(rate: rate.isFinite ? rate : 20, phase: phase)
    self.allowRaw = allowRaw
    self.choice = choice
    self.isFastOnly = isFastOnly
    self.signals = signals
    self.wishes = wishes
    self.care = care
    timing = Timing(period: pace.period)
    schema = Schema()
    attempts = choice.attempts
    layOutFirst()
    (bus, request) = (attempts[0].bus, attempts[0].request)
    writePollBytes()
  }

  public var nextWake: Instant? {
    if let deadline = dialogue.deadline {
      // As a rule the reply is there before the next slot: waiting for that from the start spares setting the timer twice
      // a poll.
      if case .asking(let poll) = state, pace.period > 0, !poll.isOverdue { return min(deadline, pace.due) }
      return deadline
    }
    return switch state {
    case .resting(let until, _), .asleep(let until): until
    // What is due by now and does not fit waits for the next answer.
    case .polling: timetable.nextDue > lastTurn ? min(pace.due, timetable.nextDue) : pace.due
    case .backingOff(let pause): pause.until
    case .down, .settingUp, .asking, .querying, .turning, .inquiring, .namingBus, .measuring, .lulling: nil
    }
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    lastTurn = now
    switch input {
    // The dialogue ends with its link; what is overdue must not be answered over a link that is gone.
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

  /// Sends what is due, if the adapter is free for it.
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
      now >= pace.due || !questions.isEmpty || now >= timetable.nextDue || aim != home
        || wantsVoltage(at: now, room: pace.due &- now)
    case .backingOff(let pause): pause.until.map { now >= $0 } ?? false || !questions.isEmpty
    }
  }

  var isDown: Bool { reasonDown != nil }

  /// Why there is no link.
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

  /// The adapter started again instead of doing what it was told. Where data are read, that is found among them.
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

  /// The adapter spoke without being asked: it started again, or goes to sleep.
  private mutating func heardUnasked(_ status: ELMStatus, at now: Instant, _ effects: inout Effects) {
    switch state {
    // A banner while the adapter is about to be reset is the one we caused.
    case .down, .resting, .settingUp(step: 0), .lulling, .asleep: return
    case .settingUp: setupFailed(status.words, isSilent: false, at: now, &effects)
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

  mutating func say(_ word: StatusWord, _ effects: inout Effects) {
    guard status != word.rawValue else { return }
    status = word.rawValue
    effects.append(.status(word.rawValue))
  }

  mutating func complain(_ words: String?, _ effects: inout Effects) {
    guard fault != words else { return }
    fault = words
    effects.append(.fault(words))
  }

  /// The kind's words for what it is doing.
  enum StatusWord: String {
    /// There is no link.
    case waiting
    /// The adapter is being made ready.
    case starting
    /// The vehicle answers.
    case polling
    /// The adapter works and the vehicle does not answer, for all that is known of its voltage.
    case carSilent = "car-silent"
    /// The vehicle does not answer, and nothing charges its battery.
    case carAsleep = "car-asleep"
    /// The vehicle answers, but nobody uses it: it is left alone.
    case parked
    /// The adapter is in no vehicle.
    case noCar = "no-car"
    /// The adapter sleeps as the vehicle does.
    case adapterAsleep = "adapter-asleep"
    /// The adapter or its answers are in trouble.
    case degraded
  }
}
