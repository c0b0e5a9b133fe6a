// Driving: who may, what was asked for last, and when it must be said again. Whatever ends the driving, zero current is
// said at once, before everything else, and twice more; over a link that is lost, or to a VESC that does not answer, first of
// all when it is back.
// It must never say a set-point to a VESC whose driver is gone.
// Facts: the safety timeout of the firmware (1 s as it comes) is put off by ALIVE and by every SET_ command.

struct VESCMotion: Sendable {
  /// How often a set-point is said again: well within the VESC's own timeout.
  static let interval: Nanoseconds = 100 * .millisecond
  /// New set-points go out no faster: a slow line must not fill up with them, and a stop come behind. Fifty a second and the
  /// questions fit 9600 baud.
  static let shortest: Nanoseconds = 20 * .millisecond
  static let stopInterval: Nanoseconds = 50 * .millisecond
  static let stopFrames = 3
  /// Commands that wait for the link to take their set-point.
  static let queueLimit = 32

  var deadMan = DeadMan()
  /// nil: nobody has asked for anything yet.
  private(set) var setPoint: VESCSetPoint?
  /// Zero currents still to be said.
  private(set) var stops = 0
  /// The VESC has answered nothing since the last zero current: it may not have heard it.
  private var isUnheard = false
  private var due: Instant = .max
  /// When something was last said.
  private var said: Instant = .min
  /// They asked for the set-point that is due.
  private var waiting: [CommandID] = []
  /// They asked for the set-point that is with the link.
  private var carried: [CommandID] = []

  var isHeld: Bool { deadMan.isHeld }
  var isStopping: Bool { stops > 0 }
  /// When there is something to say; nil: nobody drives, and the motor was let go.
  var nextDue: Instant? { isStopping || isHeld ? due : nil }

  mutating func begin(deadline: Nanoseconds, at now: Instant) {
    deadMan.begin(deadline: deadline, at: now)
    setPoint = nil
    if !isStopping { due = now }
  }

  /// The driver asks for this; false where too many wait already.
  mutating func aim(_ setPoint: VESCSetPoint, for id: CommandID, at now: Instant) -> Bool {
    guard waiting.count < Self.queueLimit else { return false }
    deadMan.squeeze(at: now)
    self.setPoint = setPoint
    isUnheard = false
    waiting.append(id)
    // The zero currents of an earlier driver end here, once one of them is out.
    stops = stops == Self.stopFrames ? 1 : 0
    due = isStopping ? now : max(now, min(due, said == .min ? now : said &+ Self.shortest))
    return true
  }

  /// Nobody drives from now on. Gives those whose set-points were not said.
  mutating func stop(at now: Instant) -> [CommandID] {
    deadMan.release()
    setPoint = nil
    (stops, isUnheard) = (Self.stopFrames, true)
    due = now
    defer { (waiting, carried) = ([], []) }
    return carried + waiting
  }

  /// The link took what it was given, or did not: those who asked for it.
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

  /// The link took a zero current.
  mutating func stopped(at now: Instant) {
    guard isStopping else { return }
    stops -= 1
    if !isStopping, isHeld { due = now }
  }

  /// The daemon stops: enough was said, or there is no link to say it over.
  mutating func giveUp() {
    (stops, isUnheard) = (0, false)
    deadMan.release()
  }

  mutating func linkCameUp(at now: Instant) { due = now }

  mutating func linkWentDown(at now: Instant) {
    if isUnheard { stops = Self.stopFrames }
  }

  /// The VESC answered a question that was sent then.
  mutating func answered(_ sent: Instant) {
    if !isStopping, sent >= said { isUnheard = false }
  }

  /// The VESC answers after a silence.
  mutating func answersAgain(at now: Instant) {
    guard isUnheard else { return }
    (stops, due) = (Self.stopFrames, now)
  }
}
