// Motion: the lease, the last setpoint, its repetition, and the last-will frames. When a lease ends, for any reason, zero current is sent
// three times, before everything else. If the link was lost, or the VESC did not respond, zero current is the first message once contact is
// restored. A setpoint must never be sent after the lease has ended.
// Source: vedderb/bldc: ALIVE and every SET_ command restart the safety timeout of the firmware, 1 s by default.

struct VESCMotion: Sendable {
  /// The interval of repetitions: well within the VESC's own timeout.
  static let interval: Nanoseconds = 100 * .millisecond
  /// The minimum interval between new setpoints, which must not fill a slow serial line and delay a stop. Fifty setpoints per second and
  /// the polls fit into 9600 baud.
  static let minInterval: Nanoseconds = 20 * .millisecond
  static let stopInterval: Nanoseconds = 50 * .millisecond
  static let stopFrames = 3
  /// The maximum number of commands that wait for the link to accept their setpoint.
  static let queueLimit = 32

  private let isAllowed: Bool
  private let allowsDuty: Bool
  /// The CAN ID of a VESC that is reached through the VESC on the link, or nil for the VESC on the link itself.
  private let canID: UInt8?
  private var deadmanTimer = DeadmanTimer()
  /// The last setpoint of the lease; nil before the first one.
  private var setPoint: VESCSetPoint?
  /// The number of zero currents that are still to be sent.
  private var stopsLeft = 0
  /// Whether the VESC has not responded since the last zero current, which may therefore be lost.
  private var isStopUnconfirmed = false
  /// When the next message is due, if the board is driven or zero currents are still to be sent.
  private var due: Instant = .max
  /// When the last message was sent.
  private var lastSent: Instant = .min
  /// The commands that wait for the setpoint that is due.
  private var pending: [CommandID] = []
  /// The commands that wait for the setpoint in flight.
  private var inFlight: [CommandID] = []
  /// Whether last-will frames are set for the link.
  private var hasLastWill = false

  init(_ options: VESCOptions) {
    (isAllowed, allowsDuty, canID) = (options.allowsMotion, options.maxDutyCycle != nil, options.canID)
  }

  var isLeaseHeld: Bool { deadmanTimer.isLeaseHeld }
  var isStopping: Bool { stopsLeft > 0 }
  /// When the next message is due; nil if the board is not driven and the motor is released.
  var nextDue: Instant? { isStopping || isLeaseHeld ? due : nil }
  /// When the lease expires if no further setpoint arrives.
  var expires: Instant? { deadmanTimer.expires }

  // MARK: The lease

  /// Begins a lease, or revokes it immediately. `refusal`: why the VESC cannot be driven now; nil if it can.
  mutating func beginLease(
    deadline: Nanoseconds, refusal: String?, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects
  ) {
    if let reason = isAllowed ? refusal : "motion is disabled: set allow-motion = true in the configuration" {
      // Send no stop: another client of the VESC may drive the motor.
      return effects.append(.leaseLost(reason))
    }
    deadmanTimer.begin(deadline: deadline, at: now)
    setPoint = nil
    if !isStopping { due = now }
    withdrawTargets(&publisher, &effects)
  }

  /// Ends a lease whose deadline has passed.
  mutating func expire(at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    if let reason = deadmanTimer.expiryReason(at: now) { revokeLease(reason, at: now, &publisher, &effects) }
  }

  /// Revokes the lease, and releases the motor.
  mutating func revokeLease(_ reason: String, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard isLeaseHeld else { return }
    endLease(reason, at: now, &publisher, &effects)
    effects.append(.leaseLost(reason))
  }

  /// Releases the motor after the lease has ended for any reason.
  mutating func endLease(_ reason: String, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard isLeaseHeld else { return }
    deadmanTimer.release()
    setPoint = nil
    (stopsLeft, isStopUnconfirmed) = (Self.stopFrames, true)
    due = now
    for id in inFlight + pending { effects.append(.complete(id, .failure(.refused(code: .leaseLost, reason)))) }
    (pending, inFlight) = ([], [])
    withdrawTargets(&publisher, &effects)
  }

  /// Resets the state at shutdown, after the zero currents were sent, or without a link.
  mutating func endShutdown() {
    (stopsLeft, isStopUnconfirmed) = (0, false)
    deadmanTimer.release()
  }

  // MARK: Setpoints

  /// Handles a setpoint that is valid according to the schema.
  mutating func setTarget(_ property: VESCProperty, _ value: Value, for id: CommandID, at now: Instant, _ effects: inout Effects) {
    guard isLeaseHeld else {
      let message = "motion lease required: run \"vehiclectl drive\""
      return effects.append(.complete(id, .failure(.refused(code: .noLease, message))))
    }
    guard property != .targetDuty || allowsDuty else {
      let message =
        "max-duty-cycle is not set, and max-motor-current has no effect in duty cycle mode: use target-current, or set max-duty-cycle"
      return effects.append(.complete(id, .failure(.refused(code: .noDuty, message))))
    }
    guard let number = value.number, let setPoint = VESCSetPoint(property, number) else {
      return effects.append(.complete(id, .failure(.invalid(argument: "value", "\(value.text) is not a number"))))
    }
    guard pending.count < Self.queueLimit else {
      return effects.append(.complete(id, .failure(.refused(code: .busy, "the link is too slow for the rate of setpoints"))))
    }
    deadmanTimer.refresh(at: now)
    self.setPoint = setPoint
    isStopUnconfirmed = false
    pending.append(id)
    // If no zero current has been sent since an earlier lease ended, one must still be sent; the others are not needed.
    stopsLeft = stopsLeft == Self.stopFrames ? 1 : 0
    due = isStopping ? now : max(now, min(due, lastSent == .min ? now : lastSent &+ Self.minInterval))
  }

  /// Removes a command whose caller has disconnected.
  mutating func cancel(_ id: CommandID) {
    pending.removeAll { $0 == id }
    inFlight.removeAll { $0 == id }
  }

  // MARK: Frames

  /// Returns the frame that is due.
  mutating func nextFrame(at now: Instant) -> [UInt8] {
    lastSent = now
    if isStopping {
      due = now &+ Self.stopInterval
      return VESCSetPoint.none.frame(canID: canID)
    }
    due = now &+ Self.interval
    swap(&pending, &inFlight)
    return setPoint?.frame(canID: canID) ?? VESCCommand.alive.frame(canID: canID)
  }

  /// Counts a zero current that the link has accepted.
  mutating func stopSent(at now: Instant) {
    guard isStopping else { return }
    stopsLeft -= 1
    if !isStopping, isLeaseHeld { due = now }
  }

  /// Completes the commands of the setpoint that the link has accepted, or failed to send.
  mutating func setPointSent(_ failure: String?, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    if inFlight.isEmpty { return }
    for id in inFlight { effects.append(.complete(id, failure.map { .failure(.notConnected($0)) } ?? .success(Report()))) }
    inFlight.removeAll(keepingCapacity: true)
    guard failure == nil, let (property, number) = setPoint?.target else { return }
    publisher.publish(property, .float(number), &effects)
    for other in VESCProperty.targets where other != property {
      publisher.withdraw(other, "\(publisher.name(of: property)) is active", &effects)
    }
  }

  // MARK: The link and the VESC

  mutating func linkCameUp(at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    due = now
    withdrawTargets(&publisher, &effects)
  }

  mutating func linkWentDown(_ reason: String, at now: Instant, _ publisher: inout VESCPublisher, _ effects: inout Effects) {
    revokeLease(reason, at: now, &publisher, &effects)
    // Zero current that could not be sent is the first message on the next link.
    if isStopUnconfirmed { stopsLeft = Self.stopFrames }
  }

  /// Handles a response to a request that was sent at this time, which confirms earlier zero currents.
  mutating func responseReceived(toRequestAt sent: Instant) {
    if !isStopping, sent >= lastSent { isStopUnconfirmed = false }
  }

  /// Handles the first response on a link, or after a silence: sends an unconfirmed stop again.
  mutating func vescBeganToRespond(at now: Instant) {
    guard isStopUnconfirmed else { return }
    (stopsLeft, due) = (Self.stopFrames, now)
  }

  /// Sets last-will frames while the board is driven or was just stopped. They release the motor if the daemon dies or freezes, because the
  /// VESC's own timeout takes a second. At other times there are none, because another client may drive the motor.
  mutating func updateLastWill(isUp: Bool, _ effects: inout Effects) {
    let needsLastWill = isUp && (isLeaseHeld || isStopping)
    guard needsLastWill != hasLastWill else { return }
    hasLastWill = needsLastWill
    let stop = VESCSetPoint.none.frame(canID: canID)
    let frames = (0..<Self.stopFrames).map { LastWill.Message(stop, after: $0 == 0 ? 0 : Self.stopInterval) }
    effects.append(.lastWill(.main, needsLastWill ? LastWill(dead: frames, frozen: frames) : nil))
  }

  /// Withdraws the targets, because there is no setpoint.
  func withdrawTargets(_ publisher: inout VESCPublisher, _ effects: inout Effects) {
    guard isAllowed else { return }
    for property in VESCProperty.targets { publisher.withdraw(property, isLeaseHeld ? "no setpoint" : "not driven", &effects) }
  }
}
