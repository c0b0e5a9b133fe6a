// Whether the car has confirmed that it stands still, and the commands that wait for this confirmation. When the link is lost, the car
// keeps driving with the last tilt, and accepts no other client. So it counts as standing still only after a response to Stop.
// Source: AutoTT, TCP.py and mainLoop.py: the program ignores an end of file, and accepts only one client before it must be restarted.

struct CarStandstill: Sendable {
  private enum State: Sendable {
    /// Continue has not been sent, and Stop has not been confirmed.
    case unknown
    /// Continue was sent, and Stop has not been confirmed since. This state is stored, so it survives a lost link and a
    /// restart of the daemon.
    case driven
    /// The car did not respond over the last link: another client may be driving it.
    case silent
    /// Stop was confirmed, and Continue has not been sent since.
    case confirmed
  }

  /// The timeout of the action `stop`. The car reads no commands for the two seconds that its camera takes to start.
  private static let stopTimeout: Nanoseconds = 2 * .second
  private static let maxWaiters = CarSendQueue.maxCommands
  static let unconfirmed = "not confirmed: the car may still be driving"
  static let silentMessage = "\(unconfirmed); it did not respond when it was last connected"
  static let drivenMessage = "\(unconfirmed); the link was lost before the car confirmed Stop: stop the car by hand"
  private static let drivenKey = "driven"

  private var state = State.unknown
  /// Whether a link was lost while a Stop was queued.
  private var hasUnsentStop = false
  /// The commands that wait for the car to confirm Stop, and their timeouts.
  private var waiters: [(id: CommandID, until: Instant)] = []

  var isConfirmed: Bool { state == .confirmed }
  /// Whether the first message over the next link must be Stop.
  var needsStop: Bool { hasUnsentStop || state == .driven }
  var deadline: Instant? { waiters.first?.until }

  /// Why it is unknown whether the car stands still, as a message; nil if the car has confirmed Stop.
  func uncertainty(_ session: CarSession.State) -> String? {
    switch session {
    case .greeting: return "the car has not responded yet: it may still be driving"
    case .silent: return "the car does not respond: it may still be driving"
    case .down(let reason):
      switch state {
      case .driven, .silent: return Self.unconfirmed
      case .confirmed, .unknown: return "link down: \(reason)"
      }
    case .ready, .closing: return isConfirmed ? nil : Self.unconfirmed
    }
  }

  /// Why a car that is not connected may be moving; nil if there is no such reason.
  var fault: String? {
    switch state {
    case .driven: Self.drivenMessage
    case .silent: Self.silentMessage
    case .confirmed, .unknown: nil
    }
  }

  /// The error message for a Stop that cannot be sent.
  func refusal(_ reason: String) -> String { isConfirmed ? reason : "\(Self.unconfirmed); \(reason)" }

  // MARK: Commands

  /// Adds a command that waits for the confirmation; returns false if too many commands wait.
  mutating func wait(for id: CommandID, at now: Instant) -> Bool {
    guard waiters.count < Self.maxWaiters else { return false }
    waiters.append((id, now &+ Self.stopTimeout))
    return true
  }

  mutating func cancel(_ id: CommandID) { waiters.removeAll { $0.id == id } }

  mutating func expire(at now: Instant, _ effects: inout Effects) {
    while let first = waiters.first, now >= first.until {
      let message = "\(Self.unconfirmed); no response to Stop, which is repeated until the car responds"
      effects.refuse(command: waiters.removeFirst().id, code: .notConfirmed, message)
    }
  }

  // MARK: Events

  mutating func restore(_ stored: [String: [UInt8]]) {
    if stored[Self.drivenKey] != nil { state = .driven }
  }

  /// Discards an earlier confirmation, because another client may have driven the car since.
  mutating func linkUp() {
    if state == .confirmed { state = .unknown }
  }

  /// Notes that the car does not respond over this link.
  mutating func carDidNotRespond() {
    if state != .driven { state = .silent }
  }

  /// Notes that Continue is being sent, and stores this for the next start of the daemon.
  mutating func continueSent(_ effects: inout Effects) {
    if state != .driven { effects.append(.store(key: Self.drivenKey, [UInt8(ascii: "1")])) }
    state = .driven
  }

  /// Notes that the link has accepted Stop.
  mutating func stopSent() { hasUnsentStop = false }

  /// Notes that the car has confirmed Stop, and completes the waiting commands.
  mutating func stopConfirmed(_ effects: inout Effects) {
    if state == .driven { effects.append(.store(key: Self.drivenKey, [])) }
    state = .confirmed
    for waiter in waiters { effects.succeed(command: waiter.id) }
    waiters = []
  }

  /// Notes a lost link. `hasStops`: stop messages are still queued, so the first message over the next link must be Stop.
  mutating func linkLost(hasStops: Bool) { hasUnsentStop = hasUnsentStop || hasStops }

  /// Discards unsent stop messages after the shutdown sequence.
  mutating func shutdownEnded() { hasUnsentStop = false }

  mutating func failCommands(_ error: CommandError, _ effects: inout Effects) {
    var error = error
    if case .notConnected(let reason) = error { error = .notConnected("\(Self.unconfirmed); \(reason)") }
    for waiter in waiters { effects.fail(command: waiter.id, error) }
    waiters = []
  }
}
