// The motion lease, the permit to send setpoints, and the last setpoint. Acquiring the lease does not move the car: the first setpoint
// of the lease sends Continue. A stop discards the setpoint; after a stop, only the action `continue` sends Continue.

struct CarDriving: Sendable {
  /// Whether setpoints may be sent to the car.
  enum Permit: Sendable {
    /// No lease is held, or the car was stopped: only the action `continue` permits driving again.
    case stopped
    /// The lease was acquired; its first setpoint sends Continue.
    case ready
    /// Continue is queued or in flight.
    case starting
    case running
  }

  /// The maximum number of commands that wait for their setpoint to be sent. If there are more, the oldest completes before its setpoint
  /// is sent.
  static let queueLimit = 64
  private static let minUnacknowledgedFrames = 8

  private var deadmanTimer = DeadmanTimer()
  private(set) var permit = Permit.stopped
  private var pacer = CarTiltPacer()
  /// The configured interval between tilts; nil to use the interval that the car requests.
  private let configuredInterval: Nanoseconds?
  /// The interval that the car has requested; nil before its request.
  private var requestedInterval: Nanoseconds?
  /// Whether the car has sent GyroStop, and has not requested tilt since.
  private(set) var rejectsTilt = false
  /// The time from the last setpoint to the expiry of the lease.
  private var deadline: Nanoseconds = 0
  /// The attitude that the driver requests, before neutral position and sensitivity are applied.
  private(set) var attitude: PhoneAttitude?
  private var tilt: CarTilt?
  private var isTiltNew = false
  /// The commands whose setpoint has not been sent yet.
  private var waitingCommands: [CommandID] = []
  /// The commands whose setpoint is in flight.
  private var commandsInFlight: [CommandID] = []

  init(configuredInterval: Nanoseconds?) {
    self.configuredInterval = configuredInterval
    if let configuredInterval { pacer.set(interval: configuredInterval) }
  }

  var isLeaseHeld: Bool { deadmanTimer.isLeaseHeld }
  var isRunning: Bool { isLeaseHeld && permit == .running }
  /// The interval between tilts; nil if none is configured and the car has not requested one.
  var interval: Nanoseconds? { configuredInterval ?? requestedInterval }

  /// When the lease expires if no further setpoint arrives; nil if no lease is held.
  var expires: Instant? { deadmanTimer.expires }
  /// Why the lease has expired; nil if it has not.
  func expiryReason(at now: Instant) -> String? { deadmanTimer.expiryReason(at: now) }

  /// When the next tilt is due; nil without a setpoint.
  var due: Instant? { tilt.map { _ in isTiltNew ? pacer.earliest : pacer.repetitionDue } }

  /// The maximum number of unacknowledged bytes at which a tilt is still sent, for a frame of this length in bytes. With more
  /// unacknowledged bytes, tilts would arrive later than the deadline.
  func maxUnacknowledgedBytes(forFrame length: Int) -> Int {
    length * max(Self.minUnacknowledgedFrames, Int(min(deadline / pacer.interval, 1000)))
  }

  // MARK: The lease

  mutating func beginLease(deadline: Nanoseconds, at now: Instant) {
    self.deadline = max(deadline, 0)
    deadmanTimer.begin(deadline: self.deadline, at: now)
    permit = .ready
    attitude = nil
  }

  /// Ends the lease. Returns the commands whose setpoints are in flight or not sent yet.
  mutating func endLease() -> [CommandID] {
    deadmanTimer.release()
    attitude = nil
    return revokePermit()
  }

  /// Revokes the permit and discards the setpoint. Returns the commands whose setpoints are in flight or not sent yet.
  mutating func revokePermit() -> [CommandID] {
    permit = .stopped
    (tilt, isTiltNew) = (nil, false)
    pacer.stopRepeating()
    defer { (waitingCommands, commandsInFlight) = ([], []) }
    return commandsInFlight + waitingCommands
  }

  /// Notes that Continue was queued.
  mutating func continueQueued() { if permit != .running { permit = .starting } }
  /// Notes that the link has accepted Continue.
  mutating func continueSent() { if permit == .starting { permit = .running } }

  // MARK: Setpoints

  /// Stores the attitude that the driver requests, and refreshes the deadman timer.
  mutating func setAttitude(_ attitude: PhoneAttitude, at now: Instant) {
    deadmanTimer.refresh(at: now)
    self.attitude = attitude
  }

  /// Removes and returns the commands whose setpoint must wait for a queued message; the caller completes them.
  mutating func removeWaitingCommands() -> [CommandID] {
    defer { waitingCommands.removeAll(keepingCapacity: true) }
    return waitingCommands
  }

  /// Sets the newest setpoint. If too many commands wait, removes and returns the oldest one, which the caller completes.
  mutating func set(_ tilt: CarTilt, for id: CommandID) -> CommandID? {
    (self.tilt, isTiltNew) = (tilt, true)
    waitingCommands.append(id)
    return waitingCommands.count > Self.queueLimit ? waitingCommands.removeFirst() : nil
  }

  /// Starts to send the last setpoint, and returns it; nil if there is none.
  mutating func startSending(at now: Instant) -> CarTilt? {
    pacer.tiltSent(isNew: isTiltNew, at: now)
    isTiltNew = false
    commandsInFlight += waitingCommands
    waitingCommands.removeAll(keepingCapacity: true)
    return tilt
  }

  /// Removes and returns the commands whose tilt the link has just accepted, or failed to send.
  mutating func removeCommandsInFlight() -> [CommandID] {
    defer { commandsInFlight.removeAll(keepingCapacity: true) }
    return commandsInFlight
  }

  mutating func cancel(_ id: CommandID) {
    waitingCommands.removeAll { $0 == id }
    commandsInFlight.removeAll { $0 == id }
  }

  // MARK: Requests of the car

  /// Sets the interval between tilts that the car has requested.
  mutating func setRequestedInterval(_ interval: Nanoseconds) {
    requestedInterval = interval
    rejectsTilt = false
    pacer.set(interval: configuredInterval ?? interval)
  }

  /// Handles GyroStop: the car accepts no tilt.
  mutating func tiltRejected() { rejectsTilt = true }

  func publishRate(_ effects: inout Effects) {
    if rejectsTilt {
      effects.withdraw(.tiltRate, "the car does not accept tilt (GyroStop)")
    } else if interval != nil {
      effects.publish(.tiltRate, .float(pacer.rate))
    } else {
      effects.withdraw(.tiltRate, "the car has not requested tilt yet")
    }
  }

  /// Discards the car's requests, because the next link may lead to another car, or to a restarted program.
  mutating func reset() { (requestedInterval, rejectsTilt) = (nil, false) }
}
