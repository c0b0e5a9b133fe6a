// Who drives, whether the car may, and what it was asked for last. A lease lets nothing move by itself: its first set-point
// asks for Continue, after a stop only a person does, and what was asked for before is forgotten with every stop.

struct CarDriving: Sendable {
  /// How far the driver is.
  enum Permit: Sendable {
    /// Nobody drives, or the car was stopped: only `continue` goes on.
    case none
    /// A lease has begun and nothing was asked for yet.
    case fresh
    /// Continue is on its way.
    case granting
    case running
  }

  /// Commands that wait for their set-point to go out; beyond them the oldest are answered early.
  static let queueLimit = 64
  private static let minBehind = 8

  var deadMan = DeadMan()
  private(set) var permit = Permit.none
  private(set) var pace = CarPace()
  private let override: Nanoseconds?
  /// The interval that the car asked for.
  private(set) var asked: Nanoseconds?
  /// The car wants no tilt until it asks again.
  private(set) var isMuted = false
  private var deadline: Nanoseconds = 0
  /// As the driver holds it, before neutral and sensitivity.
  private(set) var attitude: CarAttitude?
  private var tilt: CarTilt?
  private var isNew = false
  /// They asked for the set-point that is due, and for the one that is with the link.
  private var waiting: [CommandID] = []
  private var carried: [CommandID] = []

  init(override: Nanoseconds?) {
    self.override = override
    if let override { pace.interval = override }
  }

  var isHeld: Bool { deadMan.isHeld }
  var isRunning: Bool { isHeld && permit == .running }
  /// How often tilts are to go out; nil: nobody has said.
  var interval: Nanoseconds? { override ?? asked }

  /// When a tilt is due; nil: there is nothing to say.
  var due: Instant? { tilt.map { _ in isNew ? pace.earliest : pace.repetitionDue } }

  /// How much may be on its way for a tilt to be worth anything: what the deadline has room for.
  func maxBehind(_ frame: Int) -> Int { frame * max(Self.minBehind, Int(min(deadline / pace.interval, 1000))) }

  // MARK: The lease

  mutating func begin(deadline: Nanoseconds, at now: Instant) {
    self.deadline = max(deadline, 0)
    deadMan.begin(deadline: self.deadline, at: now)
    permit = .fresh
    attitude = nil
  }

  /// Nobody drives. Gives those whose set-points did not go out.
  mutating func release() -> [CommandID] {
    deadMan.release()
    attitude = nil
    return halt()
  }

  /// The car is to stop, and goes on only when it is told to. Gives those whose set-points did not go out.
  mutating func halt() -> [CommandID] {
    permit = .none
    (tilt, isNew) = (nil, false)
    pace.rest()
    defer { (waiting, carried) = ([], []) }
    return carried + waiting
  }

  /// Continue is asked for, or the link took it.
  mutating func grant() { if permit != .running { permit = .granting } }
  mutating func run() { if permit == .granting { permit = .running } }

  // MARK: Set-points

  /// The driver holds the phone like this.
  mutating func hold(_ attitude: CarAttitude, at now: Instant) {
    deadMan.squeeze(at: now)
    self.attitude = attitude
  }

  /// Those whose set-point has to wait for a word, and who are answered before it goes.
  mutating func takeWaiting() -> [CommandID] {
    defer { waiting.removeAll(keepingCapacity: true) }
    return waiting
  }

  /// The newest set-point; gives who has to be answered early.
  mutating func aim(_ tilt: CarTilt, for id: CommandID) -> CommandID? {
    (self.tilt, isNew) = (tilt, true)
    waiting.append(id)
    return waiting.count > Self.queueLimit ? waiting.removeFirst() : nil
  }

  /// The tilt that goes out now.
  mutating func take(at now: Instant) -> CarTilt? {
    pace.take(isNew: isNew, at: now)
    isNew = false
    carried += waiting
    waiting.removeAll(keepingCapacity: true)
    return tilt
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

  // MARK: What the car asks for

  mutating func ask(_ interval: Nanoseconds) {
    asked = interval
    isMuted = false
    pace.interval = override ?? interval
  }

  mutating func mute() { isMuted = true }

  /// The link is another one: another car, or its program anew.
  mutating func forgetCar() { (asked, isMuted) = (nil, false) }
}
