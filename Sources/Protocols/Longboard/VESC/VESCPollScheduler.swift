// When to poll, and with which request: an absolute grid, and the requests that the firmware supports, as detected. A VESC does not
// respond to unknown requests. Counts what becomes of the polls.

struct VESCPollScheduler: Sendable {
  /// Whether the firmware supports a request.
  enum Support: Equatable, Sendable {
    case unknown(timeouts: Int)
    case supported
    case unsupported
  }

  private var pace: Pace
  private(set) var statistics: VESCStatistics
  private(set) var selection = Support.unknown(timeouts: 0)
  private(set) var setup = Support.unknown(timeouts: 0)
  /// The firmware version was requested, and was received or is not available.
  private var isIdentified = false
  private var identifications = 0
  /// The last request got no response: one that every firmware supports is next, to distinguish the two reasons.
  private var isInDoubt = false
  private var setupDue: Instant = .min
  private var valuesDue: Instant = .min

  init(rate: Double, phase: Double) {
    pace = Pace(rate: rate, phase: phase)
    statistics = VESCStatistics(period: pace.period)
  }

  var period: Nanoseconds { pace.period }

  /// The next slot.
  var due: Instant { pace.due }
  /// Slots without a poll.
  var missed: Int { pace.missed }
  /// The firmware reports only the values of one motor.
  var lacksSetup: Bool { setup == .unsupported }

  mutating func linkCameUp(at now: Instant) {
    forget()
    pace.begin(at: now)
  }

  /// Another firmware may respond next.
  mutating func forget() {
    statistics.forgetTimes()
    (selection, setup) = (.unknown(timeouts: 0), .unknown(timeouts: 0))
    (isIdentified, identifications, isInDoubt) = (false, 0, false)
    (setupDue, valuesDue) = (.min, .min)
  }

  /// Takes the slot that is due; its lateness is nil for the first one of a run.
  mutating func next(at now: Instant) -> (command: VESCCommand, lateness: Nanoseconds?) {
    statistics.polled()
    let lateness = pace.take(at: now)
    return (nextCommand(at: now), lateness)
  }

  /// Slowly changing values are requested once per interval.
  private mutating func nextCommand(at now: Instant) -> VESCCommand {
    if isInDoubt {
      isInDoubt = false
      return .values
    }
    if !isIdentified {
      identifications += 1
      isIdentified = identifications >= 2
      return .firmware
    }
    let interval = max(.second, 4 &* pace.period)
    let fast: VESCCommand = selection != .unsupported ? .selectSetup : setup != .unsupported ? .setup : .values
    if fast == .selectSetup, setup != .unsupported, now >= setupDue, setupDue <= valuesDue {
      setupDue = now &+ interval
      return .setup
    }
    if fast != .values, now >= valuesDue {
      valuesDue = now &+ interval
      return .values
    }
    return fast
  }

  mutating func identified() { isIdentified = true }

  /// The response to a request was valid. `isFirst`: on this link, or after a silence; `noise`: runs of bytes without a frame.
  mutating func responded(
    to request: VESCSession.Request, isFirst: Bool, noise: Int, at now: Instant, _ publisher: inout VESCPublisher,
    _ effects: inout Effects
  ) {
    isInDoubt = false
    selection = Self.judged(selection, responded: request.command == .selectSetup)
    setup = Self.judged(setup, responded: request.command == .setup)
    if isFirst {
      statistics.forgetTimes()
      pace.begin(at: now)
    }
    if request.command != .pingCAN { statistics.add(roundTrip: now &- request.sent, lateness: request.lateness, at: now) }
    if isFirst || statistics.isDue(at: now) { statistics.publish(missed: missed, noise: noise, at: now, &publisher, &effects) }
  }

  mutating func receivedInvalidResponse() { statistics.receivedInvalidResponse() }

  mutating func timedOut(
    _ command: VESCCommand, noise: Int, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    statistics.timedOut()
    statistics.publishCounters(missed: missed, noise: noise, at: now, &publisher, &effects)
    // A scan takes long, and says nothing about the firmware.
    if command == .pingCAN { return }
    isInDoubt = command != .values
    if command == .selectSetup { selection = Self.missed(selection) }
    if command == .setup { setup = Self.missed(setup) }
  }

  /// Two timeouts while another request succeeded: the firmware does not support it.
  private static func judged(_ support: Support, responded: Bool) -> Support {
    if responded { return .supported }
    if case .unknown(let timeouts) = support, timeouts >= 2 { return .unsupported }
    return support
  }

  private static func missed(_ support: Support) -> Support {
    if case .unknown(let timeouts) = support { return .unknown(timeouts: timeouts + 1) }
    return support
  }
}
