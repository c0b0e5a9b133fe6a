// The motion lease, the permission to drive, and the last set-point. A lease alone moves nothing: its first set-point sends Continue;
// after a stop only an explicit `continue` does. A stop discards the set-point.

struct CarDriving: Sendable {
  /// The permission to drive.
  enum Permit: Sendable {
    /// No lease, or the car was stopped: only `continue` drives on.
    case none
    /// A lease has started without a set-point yet.
    case fresh
    /// Continue is being sent.
    case granting
    case running
  }

  /// The maximum number of commands that wait for their set-point; older ones get an early reply.
  static let queueLimit = 64
  private static let minBehind = 8

  private var deadmanTimer = DeadmanTimer()
  private(set) var permit = Permit.none
  private var pacer = CarTiltPacer()
  private let override: Nanoseconds?
  /// The interval that the car requested.
  private var requested: Nanoseconds?
  /// The car accepts no tilt until it requests it again.
  private(set) var isMuted = false
  private var deadline: Nanoseconds = 0
  /// The position as the driver holds it, before neutral and sensitivity.
  private(set) var attitude: CarAttitude?
  private var tilt: CarTilt?
  private var isNew = false
  /// The commands that wait for the set-point that is due, and for the one in flight.
  private var waiting: [CommandID] = []
  private var inFlight: [CommandID] = []

  init(override: Nanoseconds?) {
    self.override = override
    if let override { pacer.set(interval: override) }
  }

  var isHeld: Bool { deadmanTimer.isHeld }
  var isRunning: Bool { isHeld && permit == .running }
  /// The interval of tilts; nil: unknown.
  var interval: Nanoseconds? { override ?? requested }

  /// When the lease expires without another set-point; nil: it is not held.
  var expires: Instant? { deadmanTimer.expires }
  /// Why the lease has expired; nil: it has not.
  func expiryReason(at now: Instant) -> String? { deadmanTimer.expiryReason(at: now) }

  /// When a tilt is due; nil: none.
  var due: Instant? { tilt.map { _ in isNew ? pacer.earliest : pacer.repetitionDue } }

  /// The maximum number of unacknowledged bytes for a tilt to arrive within the deadline.
  func maxBehind(_ frame: Int) -> Int { frame * max(Self.minBehind, Int(min(deadline / pacer.interval, 1000))) }

  // MARK: The lease

  mutating func begin(deadline: Nanoseconds, at now: Instant) {
    self.deadline = max(deadline, 0)
    deadmanTimer.begin(deadline: self.deadline, at: now)
    permit = .fresh
    attitude = nil
  }

  /// Ends the lease. Returns the commands whose set-points were not sent.
  mutating func release() -> [CommandID] {
    deadmanTimer.release()
    attitude = nil
    return halt()
  }

  /// Stops the car; it drives on only after Continue. Returns the commands whose set-points were not sent.
  mutating func halt() -> [CommandID] {
    permit = .none
    (tilt, isNew) = (nil, false)
    pacer.rest()
    defer { (waiting, inFlight) = ([], []) }
    return inFlight + waiting
  }

  /// Continue was requested, or accepted by the link.
  mutating func continueQueued() { if permit != .running { permit = .granting } }
  mutating func continueSent() { if permit == .granting { permit = .running } }

  // MARK: Set-points

  /// Sets the driver's position.
  mutating func hold(_ attitude: CarAttitude, at now: Instant) {
    deadmanTimer.refresh(at: now)
    self.attitude = attitude
  }

  /// The commands whose set-point must wait for a message, and which get an early reply.
  mutating func takeWaiting() -> [CommandID] {
    defer { waiting.removeAll(keepingCapacity: true) }
    return waiting
  }

  /// Sets the newest set-point; returns the commands that get an early reply.
  mutating func set(_ tilt: CarTilt, for id: CommandID) -> CommandID? {
    (self.tilt, isNew) = (tilt, true)
    waiting.append(id)
    return waiting.count > Self.queueLimit ? waiting.removeFirst() : nil
  }

  /// The tilt that is sent now.
  mutating func take(at now: Instant) -> CarTilt? {
    pacer.take(isNew: isNew, at: now)
    isNew = false
    inFlight += waiting
    waiting.removeAll(keepingCapacity: true)
    return tilt
  }

  /// The link has accepted a tilt, or failed: returns the waiting commands.
  mutating func takeInFlight() -> [CommandID] {
    defer { inFlight.removeAll(keepingCapacity: true) }
    return inFlight
  }

  mutating func forget(_ id: CommandID) {
    waiting.removeAll { $0 == id }
    inFlight.removeAll { $0 == id }
  }

  // MARK: Requests of the car

  mutating func request(_ interval: Nanoseconds) {
    requested = interval
    isMuted = false
    pacer.set(interval: override ?? interval)
  }

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

  /// Resets the state for a new link: another car, or a restarted program.
  mutating func reset() { (requested, isMuted) = (nil, false) }
}
