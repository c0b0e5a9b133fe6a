// Decides when to poll, and with which request. Polls have fixed slots. The supported requests are detected, because a VESC does not
// respond to unknown requests. Counts polls, timeouts and invalid responses.

struct VESCPollScheduler: Sendable {
  /// Whether the firmware supports a request.
  enum Support: Equatable, Sendable {
    case unknown(timeouts: Int)
    case supported
    case unsupported
  }

  private static let (maxTimeoutsOfUnknownFirmware, maxTimeoutsOfCurrentFirmware) = (2, 10)
  /// The first major version of which all versions support every request for values: 3.48 has them all. Source: comm/commands.c of
  /// vedderb/bldc.
  private static let firstCurrentVersion = 5

  private var pace: Pace
  private(set) var statistics: VESCStatistics
  /// The support of GET_VALUES_SETUP_SELECTIVE.
  private(set) var selectedSetupSupport = Support.unknown(timeouts: 0)
  /// The support of GET_VALUES_SETUP.
  private(set) var setupSupport = Support.unknown(timeouts: 0)
  /// The number of timeouts after which a request is unsupported. More for firmware that supports all of them, on which only a link that
  /// loses responses causes timeouts.
  private var maxTimeouts = Self.maxTimeoutsOfUnknownFirmware
  /// Whether the firmware version was received, or found to be unavailable.
  private var isIdentified = false
  /// The number of requests for the firmware version.
  private var identifications = 0
  /// Whether the last request timed out. The next one is then a request that every firmware supports. A response to it shows that the VESC
  /// responds, so the firmware may not support the request that timed out.
  private var lastRequestTimedOut = false
  // When the requests for slowly changing values are due.
  private var setupDue: Instant = .min
  private var valuesDue: Instant = .min

  init(rate: Double, phase: Double) {
    pace = Pace(rate: rate, phase: phase)
    statistics = VESCStatistics(period: pace.period)
  }

  var period: Nanoseconds { pace.period }

  /// The next slot.
  var due: Instant { pace.due }
  /// The number of slots without a poll.
  var missed: Int { pace.missed }
  /// Whether the firmware does not support GET_VALUES_SETUP, so that it reports only one motor.
  var lacksSetupValues: Bool { setupSupport == .unsupported }

  mutating func linkCameUp(at now: Instant) {
    forgetFirmware()
    pace.begin(at: now)
  }

  /// Discards what is known about the firmware, because another VESC may respond next.
  mutating func forgetFirmware() {
    statistics.resetTiming()
    (selectedSetupSupport, setupSupport) = (.unknown(timeouts: 0), .unknown(timeouts: 0))
    (isIdentified, identifications, lastRequestTimedOut) = (false, 0, false)
    maxTimeouts = Self.maxTimeoutsOfUnknownFirmware
    (setupDue, valuesDue) = (.min, .min)
  }

  /// Uses the slot that is due: returns its request, and its lateness, which is nil for the first slot of a run.
  mutating func next(at now: Instant) -> (command: VESCCommand, lateness: Nanoseconds?) {
    statistics.polled()
    let lateness = pace.recordPoll(at: now)
    return (nextCommand(at: now), lateness)
  }

  /// The next request; slowly changing values are requested once per interval.
  private mutating func nextCommand(at now: Instant) -> VESCCommand {
    if lastRequestTimedOut {
      lastRequestTimedOut = false
      return .values
    }
    if !isIdentified {
      identifications += 1
      isIdentified = identifications >= 2
      return .firmware
    }
    let interval = max(.second, 4 &* pace.period)
    let fast: VESCCommand =
      selectedSetupSupport != .unsupported ? .selectedSetupValues : setupSupport != .unsupported ? .setupValues : .values
    if fast == .selectedSetupValues, setupSupport != .unsupported, now >= setupDue, setupDue <= valuesDue {
      setupDue = now &+ interval
      return .setupValues
    }
    if fast != .values, now >= valuesDue {
      valuesDue = now &+ interval
      return .values
    }
    return fast
  }

  mutating func received(_ firmware: VESCFirmware) {
    isIdentified = true
    if firmware.major >= Self.firstCurrentVersion { maxTimeouts = Self.maxTimeoutsOfCurrentFirmware }
  }

  /// Handles a valid response. `isFirst`: it is the first on this link, or after a silence; `noise`: the number of runs of invalid data.
  mutating func responded(
    to request: VESCSession.Request, isFirst: Bool, noise: Int, at now: Instant, _ publisher: inout VESCPublisher,
    _ effects: inout Effects
  ) {
    lastRequestTimedOut = false
    selectedSetupSupport = afterResponse(selectedSetupSupport, responded: request.command == .selectedSetupValues)
    setupSupport = afterResponse(setupSupport, responded: request.command == .setupValues)
    if isFirst {
      statistics.resetTiming()
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
    // A scan takes seconds, so its timeout does not mean that the firmware does not support it.
    if command == .pingCAN { return }
    lastRequestTimedOut = command != .values
    if command == .selectedSetupValues { selectedSetupSupport = Self.afterTimeout(selectedSetupSupport) }
    if command == .setupValues { setupSupport = Self.afterTimeout(setupSupport) }
  }

  /// The support of a request after a response. `responded`: the response was to this request. After `maxTimeouts`, a response to
  /// another request shows that the request is unsupported.
  private func afterResponse(_ support: Support, responded: Bool) -> Support {
    if responded { return .supported }
    if case .unknown(let timeouts) = support, timeouts >= maxTimeouts { return .unsupported }
    return support
  }

  private static func afterTimeout(_ support: Support) -> Support {
    if case .unknown(let timeouts) = support { return .unknown(timeouts: timeouts + 1) }
    return support
  }
}
