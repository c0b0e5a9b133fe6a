// Decides when to pause polling, so that the vehicle can sleep and its 12 V battery is not drained. Facts: a lead battery at rest has 12.4
// to 12.7 V when full and 11.8 V when nearly empty, and 13 V and more while it is charged. An adapter without a vehicle measures a few
// volts of its own supply, or none.

struct CarCare: Sendable, Equatable {
  /// Polling pauses below this voltage, in V; 0: never.
  let floor: Double
  /// The interval of probes while polling is paused.
  let pause: Nanoseconds
  /// Polling pauses after the vehicle was not used for this long; 0: never.
  let idleAfter: Nanoseconds
  /// The adapter sleeps between probes.
  let sleepsAdapter: Bool

  /// The last voltage at the OBD connector; nil: not supported.
  private(set) var volts: Double?
  private var measured: Instant?
  private var lowSince: Instant?
  private var isLeft = false
  private var used: Instant?

  /// The interval of measurements while polling.
  private static let measurePause: Nanoseconds = 10 * .second
  /// Longer than the voltage drop of a starter.
  private static let timeout: Nanoseconds = 30 * .second
  /// A battery recovers a little without load, in V.
  private static let recovery = 0.3
  private static let charging = 13.0
  /// Above this voltage it is a 24 V system.
  private static let doubled = 18.0
  private static let minInVehicle = 6.0

  init(floor: Double = 11.8, pause: Nanoseconds = 30 * .second, idleAfter: Nanoseconds = 600 * .second, sleepsAdapter: Bool = false) {
    (self.floor, self.pause, self.idleAfter, self.sleepsAdapter) = (floor, pause, idleAfter, sleepsAdapter)
  }

  /// Resets for a new link. A low battery remains so until it is measured again.
  mutating func begin() { (volts, measured, used) = (nil, nil, nil) }

  /// The next measurement while polling.
  var due: Instant { measured.map { $0 &+ Self.measurePause } ?? .min }

  /// Takes a measured voltage; nil: the adapter does not report it.
  mutating func measured(_ volts: Double?, at now: Instant) {
    self.volts = volts
    measured = now
    if isCharging { used = now }
    guard let volts, isInVehicle, volts < floor + (isLeft ? Self.recovery : 0) else { return (lowSince, isLeft) = (nil, false) }
    lowSince = lowSince ?? now
  }

  /// Whether the adapter measures a vehicle's battery; true if it cannot measure.
  var isInVehicle: Bool { volts.map { $0 >= Self.minInVehicle } ?? true }
  /// The engine runs, or the battery is being charged.
  var isCharging: Bool { volts.map { $0 >= ($0 > Self.doubled ? 2 : 1) * Self.charging } ?? false }

  /// The battery has been low for a while.
  mutating func isLow(at now: Instant) -> Bool {
    // While the vehicle is driven it charges its battery, whatever the adapter measures.
    guard let lowSince, used.map({ now &- $0 >= Self.timeout }) ?? true else { return false }
    if now &- lowSince >= Self.timeout { isLeft = true }
    return isLeft
  }

  /// The vehicle is driven or charged, or its ignition is on. A charging voltage counts as well.
  mutating func isUsed(at now: Instant) { used = now }

  /// The vehicle has been unused for so long that it may sleep.
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
