// Motion: the lease, the current set-point, and its repetition. Whatever ends driving, zero current is sent at once, before everything
// else, and twice more; after a lost link or a VESC that did not respond, it is the first message. A set-point must never be sent
// after the lease has ended.
// Source: the safety timeout of the firmware (1 s by default) is restarted by ALIVE and by every SET_ command.

struct VESCMotion: Sendable {
  /// The interval of repetitions: well within the VESC's own timeout.
  static let interval: Nanoseconds = 100 * .millisecond
  /// The minimum interval of new set-points: a slow line must not fill up with them and delay a stop. Fifty per second and the polls
  /// fit 9600 baud.
  static let shortest: Nanoseconds = 20 * .millisecond
  static let stopInterval: Nanoseconds = 50 * .millisecond
  static let stopFrames = 3
  /// The maximum number of commands that wait for the link to accept their set-point.
  static let queueLimit = 32

  var deadmanTimer = DeadmanTimer()
  /// nil: no set-point yet.
  private(set) var setPoint: VESCSetPoint?
  /// Zero currents that are still to be sent.
  private(set) var stops = 0
  /// The VESC has not responded since the last zero current, so it may be lost.
  private var isUnheard = false
  private var due: Instant = .max
  /// When the last message was sent.
  private var said: Instant = .min
  /// The commands that wait for the set-point that is due.
  private var waiting: [CommandID] = []
  /// The commands that wait for the set-point in flight.
  private var carried: [CommandID] = []

  var isHeld: Bool { deadmanTimer.isHeld }
  var isStopping: Bool { stops > 0 }
  /// When the next message is due; nil: not driven, and the motor is released.
  var nextDue: Instant? { isStopping || isHeld ? due : nil }

  mutating func begin(deadline: Nanoseconds, at now: Instant) {
    deadmanTimer.begin(deadline: deadline, at: now)
    setPoint = nil
    if !isStopping { due = now }
  }

  /// Sets the set-point; false if too many commands wait.
  mutating func aim(_ setPoint: VESCSetPoint, for id: CommandID, at now: Instant) -> Bool {
    guard waiting.count < Self.queueLimit else { return false }
    deadmanTimer.refresh(at: now)
    self.setPoint = setPoint
    isUnheard = false
    waiting.append(id)
    // The zero currents after an earlier lease end here, once one of them was sent.
    stops = stops == Self.stopFrames ? 1 : 0
    due = isStopping ? now : max(now, min(due, said == .min ? now : said &+ Self.shortest))
    return true
  }

  /// Ends the lease. Returns the commands whose set-points were not sent.
  mutating func stop(at now: Instant) -> [CommandID] {
    deadmanTimer.release()
    setPoint = nil
    (stops, isUnheard) = (Self.stopFrames, true)
    due = now
    defer { (waiting, carried) = ([], []) }
    return carried + waiting
  }

  /// The link has accepted a message, or failed: returns the waiting commands.
  mutating func takeCarried() -> [CommandID] {
    defer { carried.removeAll(keepingCapacity: true) }
    return carried
  }

  mutating func forget(_ id: CommandID) {
    waiting.removeAll { $0 == id }
    carried.removeAll { $0 == id }
  }

  /// The frame that is due.
  mutating func take(at now: Instant, can: UInt8?) -> [UInt8] {
    said = now
    if isStopping {
      due = now &+ Self.stopInterval
      return VESCSetPoint.none.frame(can: can)
    }
    due = now &+ Self.interval
    swap(&waiting, &carried)
    return setPoint?.frame(can: can) ?? VESCCommand.alive.frame(can: can)
  }

  /// The link has accepted a zero current.
  mutating func stopped(at now: Instant) {
    guard isStopping else { return }
    stops -= 1
    if !isStopping, isHeld { due = now }
  }

  /// Shutdown: enough was sent, or there is no link.
  mutating func giveUp() {
    (stops, isUnheard) = (0, false)
    deadmanTimer.release()
  }

  mutating func linkCameUp(at now: Instant) { due = now }

  mutating func linkWentDown(at now: Instant) {
    if isUnheard { stops = Self.stopFrames }
  }

  /// The VESC has responded to a request that was sent then.
  mutating func answered(_ sent: Instant) {
    if !isStopping, sent >= said { isUnheard = false }
  }

  /// The VESC responds after a silence.
  mutating func answersAgain(at now: Instant) {
    guard isUnheard else { return }
    (stops, due) = (Self.stopFrames, now)
  }
}
