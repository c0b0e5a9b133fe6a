// When a vehicle is left alone so that neither it nor its 12 V battery wears out by being asked: while it sleeps, while the battery is
// low, while nobody uses it. It decides from what was measured and seen, and does nothing itself.
// Facts: a lead battery at rest has 12.4 to 12.7 V when full and 11.8 V when nearly empty; while the generator or the converter charges
// it, it has 13 V and more. An adapter without a vehicle tells of some volts of its own supply, or none.

struct CarCare: Sendable, Equatable {
  /// Below it the vehicle is not asked; V, 0: never mind.
  let floor: Double
  /// From one question to the next while the vehicle is left alone.
  let pause: Nanoseconds
  /// Nobody uses the vehicle for so long: it may sleep. 0: never.
  let idleAfter: Nanoseconds
  /// The adapter sleeps as well.
  let sleepsAdapter: Bool

  /// At the plug, as the adapter measured it last; nil: it cannot.
  private(set) var volts: Double?
  private var measured: Instant?
  private var lowSince: Instant?
  private var isLeft = false
  private var used: Instant?

  /// Between two measurements while polling.
  private static let measurePause: Nanoseconds = 10 * .second
  /// A starter pulls the voltage down for less than this.
  private static let timeout: Nanoseconds = 30 * .second
  /// A battery recovers a little when it is left alone.
  private static let recovery = 0.3
  private static let charging = 13.0
  /// What has more has two batteries in a row: 24 V.
  private static let doubled = 18.0
  private static let minInVehicle = 6.0

  init(floor: Double = 11.8, pause: Nanoseconds = 30 * .second, idleAfter: Nanoseconds = 600 * .second, sleepsAdapter: Bool = false) {
    (self.floor, self.pause, self.idleAfter, self.sleepsAdapter) = (floor, pause, idleAfter, sleepsAdapter)
  }

  /// The link is new. What was wrong with the battery still is, until it is measured.
  mutating func begin() { (volts, measured, used) = (nil, nil, nil) }

  /// When the voltage is to be measured while the vehicle is polled.
  var due: Instant { measured.map { $0 &+ Self.measurePause } ?? .min }

  /// The voltage now; nil: the adapter does not tell.
  mutating func measured(_ volts: Double?, at now: Instant) {
    self.volts = volts
    measured = now
    if isCharging { used = now }
    guard let volts, isInVehicle, volts < floor + (isLeft ? Self.recovery : 0) else { return (lowSince, isLeft) = (nil, false) }
    lowSince = lowSince ?? now
  }

  /// It tells of no vehicle's battery.
  var isInVehicle: Bool { volts.map { $0 >= Self.minInVehicle } ?? true }
  /// The vehicle's machine runs, or it charges.
  var isCharging: Bool { volts.map { $0 >= ($0 > Self.doubled ? 2 : 1) * Self.charging } ?? false }

  /// The battery is low, and was for a while.
  mutating func isLow(at now: Instant) -> Bool {
    // While it is driven it charges its battery, whatever the adapter measures.
    guard let lowSince, used.map({ now &- $0 >= Self.timeout }) ?? true else { return false }
    if now &- lowSince >= Self.timeout { isLeft = true }
    return isLeft
  }

  /// Somebody drives or charges it, or its ignition is on. A battery that is charged tells the same.
  mutating func isUsed(at now: Instant) { used = now }

  /// Nobody does, for so long that it may sleep.
  mutating func isIdle(at now: Instant) -> Bool {
    guard idleAfter > 0 else { return false }
    if used == nil { used = now }
    return now &- (used ?? now) >= idleAfter
  }

  var pauseWords: String { "it is polled every \(pause / .second) s" }
  var lowWords: String {
    "the 12 V battery is low (min-voltage = \(floor)): polling is paused until it reaches \(((floor + Self.recovery) * 10).rounded() / 10) V"
  }
  var idleWords: String { "the vehicle has not been used for \(idleAfter / .second) s: \(pauseWords)" }
}
