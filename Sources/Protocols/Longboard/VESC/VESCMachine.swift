// The `longboard` machine for a VESC: polls it on an absolute grid, executes commands between polls, and drives it under the motion
// lease. At most one request and one write are in flight. What is sent next follows from the state, in `advance`: a stop before a
// set-point before a command before a poll. A late response, noise, or a missing VESC never becomes a value.
// Source: vedderb/bldc comm/packet.c and comm/commands.c.

/// Communicates with a VESC.
public struct VESCMachine: Machine {
  /// The state of the machine. Each case carries only what is valid in it.
  enum State {
    /// No link, or one that is to be reset.
    case down(String)
    /// The next request waits for its slot or its cause.
    case ready
    /// A request is in flight.
    case asking(Question)
    /// The VESC does not respond; the next attempt is due then.
    case silent(until: Instant)
  }

  struct Question {
    var command: VESCCommand
    var sent: Instant
    var deadline: Instant
    /// Its lateness, if it had a slot.
    var lateness: Nanoseconds?
    /// The next slot came before the response.
    var isOverdue = false
  }

  /// The purpose of a write in flight.
  enum Cargo { case stop, setPoint, question }

  static let timeout: Nanoseconds = 200 * .millisecond
  static let silences = 5
  /// The timeout of a write.
  static let linkTimeout: Nanoseconds = 5 * .second

  public let schema: Schema
  let options: VESCOptions
  var state = State.down("the link is not up yet")
  var sending: (id: SendID, cargo: Cargo, at: Instant)?
  private var lastSend: SendID = 0
  var reader = VESCReader()
  var telemetry: VESCTelemetry
  var odometer = VESCOdometer()
  var statistics: VESCStatistics
  var publisher: VESCPublisher
  var talk = VESCConversation()
  var pace: Pace
  var motion: VESCMotion
  var wishes: [VESCWish] = []
  var limits = VESCLimitsKept()
  /// The frames of the requests.
  var frames: [VESCCommand: [UInt8]] = [:]
  /// Why the VESC cannot be used, and why its mode is not active.
  var silence: String?
  var modeTrouble: String?
  /// The daemon stops.
  var isEnding = false
  var status = ""
  var fault: String?

  /// Creates a machine from the options of `Kind.longboard`.
  public init(_ setup: Setup) throws(OptionError) {
    options = try VESCOptions(setup)
    pace = Pace(rate: options.rate, phase: setup.phase)
    statistics = VESCStatistics(period: pace.period)
    telemetry = VESCTelemetry(options)
    motion = VESCMotion(options)
    schema = Schema(properties: VESCSignal.properties(options, period: pace.period), actions: [Self.pingCAN])
    publisher = VESCPublisher(schema)
    for command in [VESCCommand.firmware, .values, .setup, .limits] { frames[command] = command.frame(can: options.can) }
    frames[.selectSetup] = VESCCommand.selectSetup.frame(VESCCommand.bytes(VESCValues.fastMask), can: options.can)
    frames[.pingCAN] = VESCCommand.pingCAN.frame()
  }

  public var nextWake: Instant? {
    if case .down = state { return nil }
    var next = motion.expires ?? .max
    if let sending {
      next = min(next, sending.at &+ Self.linkTimeout)
    } else if let due = motion.nextDue {
      next = min(next, due)
    }
    if isEnding { return next == .max ? nil : next }
    switch state {
    case .down: break
    case .ready: if sending == nil { next = min(next, hasWish ? .min : pace.due) }
    case .silent(let until): if sending == nil { next = min(next, until) }
    case .asking(let question):
      next = min(next, question.deadline, progressDue(question) ?? .max)
      // The response usually arrives before the next slot, so waiting for the slot from the start avoids a second timer per request.
      if !question.isOverdue, talk.isSettled { next = min(next, pace.due) }
    }
    return next == .max ? nil : next
  }

  public mutating func handle(_ input: Input, at now: Instant, _ effects: inout Effects) {
    switch input {
    // Overdue messages must not be handled for a lost link.
    case .linkChanged(.main, _): break
    default: expire(at: now, &effects)
    }
    switch input {
    case .started(let restored, _): restore(restored, &effects)
    case .linkChanged(.main, .up): linkCameUp(at: now, &effects)
    case .linkChanged(.main, .down(let reason)): linkWentDown(reason, at: now, &effects)
    case .received(.main, let bytes): received(bytes, at: now, &effects)
    case .sent(let id, let failure): sent(id, failure, at: now, &effects)
    case .perform(let id, let command): perform(id, command, at: now, &effects)
    case .cancelled(let id): forget(id)
    case .stored(let key, let failure): stored(key, failure, &effects)
    case .leaseBegan(let deadline): motion.begin(deadline: deadline, unavailable: reasonNotToAsk, at: now, &publisher, &effects)
    case .leaseEnded(let reason): motion.end(reason, at: now, &publisher, &effects)
    case .wake:
      if case .asking(var question) = state, now >= pace.due {
        question.isOverdue = true
        state = .asking(question)
      }
    case .stopping: stop(at: now, &effects)
    case .linkChanged, .received, .observed, .response, .rows, .time: break
    }
    advance(at: now, &effects)
    report(&effects)
  }

  /// Handles timeouts.
  private mutating func expire(at now: Instant, _ effects: inout Effects) {
    motion.expire(at: now, &publisher, &effects)
    if let sending, now &- sending.at >= Self.linkTimeout { return giveUp("write timeout", at: now, &effects) }
    guard case .asking(let question) = state else { return }
    if now >= question.deadline {
      timedOut(question, at: now, &effects)
    } else if let due = progressDue(question), now >= due {
      reportProgress(question, at: now, &effects)
    }
  }

  /// Sends what is due, if the link is free.
  private mutating func advance(at now: Instant, _ effects: inout Effects) {
    if case .down = state {
      if isEnding { end(&effects) }
      return
    }
    guard sending == nil else { return }
    if let due = motion.nextDue, now >= due {
      let cargo = motion.isStopping ? Cargo.stop : .setPoint
      return send(motion.nextFrame(at: now), cargo, at: now, &effects)
    }
    if isEnding {
      if !motion.isStopping { end(&effects) }
      return
    }
    switch state {
    case .down, .asking: break
    case .silent(let until): if now >= until { ask(.firmware, at: now, &effects) }
    case .ready:
      if let command = wishedQuestion(at: now, &effects) {
        ask(command, at: now, &effects)
      } else if now >= pace.due {
        statistics.polled()
        let lateness = pace.take(at: now)
        ask(talk.nextPoll(at: now, interval: max(.second, 4 &* pace.period)), lateness: lateness, at: now, &effects)
      }
    }
  }

  private mutating func ask(_ command: VESCCommand, lateness: Nanoseconds? = nil, at now: Instant, _ effects: inout Effects) {
    let timeout = command == .pingCAN ? VESCWish.pingTimeout : Self.timeout
    state = .asking(Question(command: command, sent: now, deadline: now &+ timeout, lateness: lateness))
    let frame = command == .setLimits ? setLimitsFrame : frames[command]
    send(frame ?? command.frame(can: options.can), .question, at: now, &effects)
  }

  private mutating func send(_ frame: [UInt8], _ cargo: Cargo, at now: Instant, _ effects: inout Effects) {
    // Without motion nothing overtakes a request, and its response implies that the link accepted it: that saves a turn.
    if cargo == .question, !options.allowsMotion { return effects.send(.main, frame) }
    lastSend &+= 1
    sending = (lastSend, cargo, now)
    effects.send(.main, frame, lastSend)
  }

  private mutating func sent(_ id: SendID, _ failure: String?, at now: Instant, _ effects: inout Effects) {
    guard let sending, sending.id == id else { return }
    self.sending = nil
    switch sending.cargo {
    case .question: break
    case .stop: if failure == nil { motion.stopSent(at: now) }
    case .setPoint: motion.setPointSent(failure, &publisher, &effects)
    }
  }
}
