// The motion lease, the permit, and the last set-point. Acquiring the lease moves nothing: its first set-point sends Continue. After a
// stop only the action `continue` sends it. A stop discards the set-point.

struct CarDriving: Sendable {
  /// Whether set-points may be sent to the car.
  enum Permit: Sendable {
    /// No lease is held, or the car was stopped: only the action `continue` permits driving again.
    case none
    /// The lease was acquired, and no set-point has arrived yet.
    case fresh
    /// Continue is queued or in flight.
    case granting
    case running
  }

  /// The maximum number of commands that wait for their set-point; beyond it, the oldest completes before its set-point is sent.
  static let queueLimit = 64
  private static let minUnacknowledgedFrames = 8

  private var deadmanTimer = DeadmanTimer()
  private(set) var permit = Permit.none
  private var pacer = CarTiltPacer()
  private let override: Nanoseconds?
  /// The interval that the car requested; nil before its request.
  private var requested: Nanoseconds?
  /// Whether the car has sent GyroStop: it accepts no tilt until it requests tilt again.
  private(set) var isMuted = false
  /// The time after the last set-point at which the lease expires.
  private var deadline: Nanoseconds = 0
  /// The attitude that the driver requests, before neutral position and sensitivity are applied.
  private(set) var attitude: CarAttitude?
  private var tilt: CarTilt?
  private var isNew = false
  /// The commands whose set-point is not sent yet.
  private var waiting: [CommandID] = []
  /// The commands whose set-point is in flight.
  private var inFlight: [CommandID] = []

  init(override: Nanoseconds?) {
    self.override = override
    if let override { pacer.set(interval: override) }
  }

  var isHeld: Bool { deadmanTimer.isHeld }
  var isRunning: Bool { isHeld && permit == .running }
  /// The interval of tilts; nil if none is configured and the car has not requested one.
  var interval: Nanoseconds? { override ?? requested }

  /// When the lease expires without another set-point; nil if no lease is held.
  var expires: Instant? { deadmanTimer.expires }
  /// Why the lease has expired; nil if it has not.
  func expiryReason(at now: Instant) -> String? { deadmanTimer.expiryReason(at: now) }

  /// When the next tilt is due; nil without a set-point.
  var due: Instant? { tilt.map { _ in isNew ? pacer.earliest : pacer.repetitionDue } }

  /// The maximum number of unacknowledged bytes with which a tilt is still sent, for a frame of this length in bytes. With more, tilts
  /// would arrive later than the deadline.
  func maxUnacknowledgedBytes(forFrame length: Int) -> Int {
    length * max(Self.minUnacknowledgedFrames, Int(min(deadline / pacer.interval, 1000)))
  }

  // MARK: The lease

  mutating func begin(deadline: Nanoseconds, at now: Instant) {
    self.deadline = max(deadline, 0)
    deadmanTimer.begin(deadline: self.deadline, at: now)
    permit = .fresh
    attitude = nil
  }

  /// Ends the lease. Returns the commands whose set-points are not sent, or in flight.
  mutating func release() -> [CommandID] {
    deadmanTimer.release()
    attitude = nil
    return halt()
  }

  /// Revokes the permit and discards the set-point. Returns the commands whose set-points are not sent, or in flight.
  mutating func halt() -> [CommandID] {
    permit = .none
    (tilt, isNew) = (nil, false)
    pacer.rest()
    defer { (waiting, inFlight) = ([], []) }
    return inFlight + waiting
  }

  /// Notes that Continue was queued.
  mutating func continueQueued() { if permit != .running { permit = .granting } }
  /// Notes that the link has accepted Continue.
  mutating func continueSent() { if permit == .granting { permit = .running } }

  // MARK: Set-points

  /// Sets the attitude that the driver requests, and refreshes the deadman timer.
  mutating func hold(_ attitude: CarAttitude, at now: Instant) {
    deadmanTimer.refresh(at: now)
    self.attitude = attitude
  }

  /// Removes and returns the commands whose set-point must wait for a queued message. They are completed before it is sent.
  mutating func takeWaiting() -> [CommandID] {
    defer { waiting.removeAll(keepingCapacity: true) }
    return waiting
  }

  /// Sets the newest set-point. If too many commands wait, removes and returns the oldest one, which the caller completes.
  mutating func set(_ tilt: CarTilt, for id: CommandID) -> CommandID? {
    (self.tilt, isNew) = (tilt, true)
    waiting.append(id)
    return waiting.count > Self.queueLimit ? waiting.removeFirst() : nil
  }

  /// Returns the tilt to send now.
  mutating func take(at now: Instant) -> CarTilt? {
    pacer.take(isNew: isNew, at: now)
    isNew = false
    inFlight += waiting
    waiting.removeAll(keepingCapacity: true)
    return tilt
  }

  /// Removes and returns the commands whose tilt the link has just accepted, or failed to send.
  mutating func takeInFlight() -> [CommandID] {
    defer { inFlight.removeAll(keepingCapacity: true) }
    return inFlight
  }

  mutating func forget(_ id: CommandID) {
    waiting.removeAll { $0 == id }
    inFlight.removeAll { $0 == id }
  }

  // MARK: Requests of the car

  /// Sets the interval of tilts that the car has requested.
  mutating func request(_ interval: Nanoseconds) {
    requested = interval
    isMuted = false
    pacer.set(interval: override ?? interval)
  }

  /// Stops sending tilts after GyroStop.
  mutating func mute() { isMuted = true }

  func publishRate(_ effects: inout Effects) {
    if isMuted {
      effects.withdraw(.tiltRate, "the car does not accept tilt (GyroStop)")
    } else if interval != nil {
      effects.publish(.tiltRate, .float(pacer.rate))
    } else {
      effects.withdraw(.tiltRate, "the car has not requested tilt yet")
    }
  }

  /// Discards the car's requests: the next link may lead to another car, or to a restarted program.
  mutating func reset() { (requested, isMuted) = (nil, false) }
}
