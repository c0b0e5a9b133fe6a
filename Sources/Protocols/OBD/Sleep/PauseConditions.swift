// The conditions under which polling pauses: the 12 V battery is low, or the vehicle is not in use and should fall asleep. A lead-acid
// battery at rest has 12.4 to 12.7 V when full and 11.8 V when nearly empty; while charging it has at least 13 V. An adapter without a
// vehicle measures a few volts of its own supply, or none.

struct PauseConditions: Sendable, Equatable {
  /// Polling pauses below this voltage, in V; 0 disables this.
  let minVoltage: Double
  /// The interval between probes while polling is paused.
  let probeInterval: Nanoseconds
  /// Polling pauses when the vehicle has not been in use for this long; 0 disables this.
  let idleAfter: Nanoseconds
  /// Whether the adapter enters low power mode between probes.
  let usesLowPower: Bool

  /// The last voltage at the OBD connector in V, or nil if it was not measured.
  private(set) var volts: Double?
  private var lastMeasurement: Instant?
  private var lowSince: Instant?
  /// Whether the voltage has been low for long enough to pause polling.
  private var isLow = false
  /// When the vehicle was last in use.
  private var lastUse: Instant?
  /// Whether the link has come up since the vehicle was last checked for use.
  private var isNewLink = false

  /// The interval between measurements while polling.
  private static let measurementInterval: Nanoseconds = 10 * .second
  /// The battery must be low for this long: longer than the voltage drop while the starter runs.
  private static let minLowDuration: Nanoseconds = 30 * .second
  /// The rise above `minVoltage` that ends a pause, in V: without load the voltage of a battery rises a little.
  private static let hysteresis = 0.3
  /// The voltage of a charging 12 V battery, in V.
  private static let minCharging = 13.0
  /// Above this voltage, in V, the vehicle has a 24 V system.
  private static let max12V = 18.0
  /// A vehicle that was not in use before the link was lost is polled for at least this long, for signs of use.
  private static let newLinkDuration: Nanoseconds = 60 * .second
  /// Below this voltage, in V, the adapter measures its own supply.
  private static let minInVehicle = 6.0

  init(
    minVoltage: Double = 11.8, probeInterval: Nanoseconds = 30 * .second, idleAfter: Nanoseconds = 600 * .second,
    usesLowPower: Bool = false
  ) {
    (self.minVoltage, self.probeInterval, self.idleAfter, self.usesLowPower) = (minVoltage, probeInterval, idleAfter, usesLowPower)
  }

  /// Resets the measurement for a new link. A battery that was low is considered low until it is measured again. The time without use goes
  /// on, because a link that is lost often must not cause a parked vehicle to be polled without end.
  mutating func reset() { (volts, lastMeasurement, isNewLink) = (nil, nil, true) }

  /// The time at which the next measurement is due while polling, or `.min` if it is due at once.
  var measurementDue: Instant { lastMeasurement.map { $0 &+ Self.measurementInterval } ?? .min }

  /// Records a measured voltage in V, or nil if the adapter does not report it.
  mutating func recordVoltage(_ volts: Double?, at now: Instant) {
    self.volts = volts
    lastMeasurement = now
    if isCharging { lastUse = now }
    guard let volts, isInVehicle, volts < minVoltage + (isLow ? Self.hysteresis : 0) else { return (lowSince, isLow) = (nil, false) }
    lowSince = lowSince ?? now
  }

  /// Whether the adapter measures a vehicle's battery; true if it cannot measure.
  var isInVehicle: Bool { volts.map { $0 >= Self.minInVehicle } ?? true }
  /// Whether the battery is being charged, by a running engine or otherwise.
  var isCharging: Bool { volts.map { $0 >= ($0 > Self.max12V ? 2 : 1) * Self.minCharging } ?? false }

  /// Returns whether the battery has been low for long enough to pause polling.
  mutating func checkLow(at now: Instant) -> Bool {
    // A vehicle in use charges its battery, whatever the adapter measures.
    guard let lowSince, lastUse.map({ now &- $0 >= Self.minLowDuration }) ?? true else { return false }
    if now &- lowSince >= Self.minLowDuration { isLow = true }
    return isLow
  }

  /// Records that the vehicle is driven or charged, or its ignition is on.
  mutating func recordUse(at now: Instant) { lastUse = now }

  /// Returns whether the vehicle has not been in use for `idleAfter`. The time starts with the first call.
  mutating func checkIdle(at now: Instant) -> Bool {
    guard idleAfter > 0 else { return false }
    var since = lastUse ?? now
    if isNewLink { since = max(since, now &- idleAfter &+ min(idleAfter, Self.newLinkDuration)) }
    (lastUse, isNewLink) = (since, false)
    return now &- since >= idleAfter
  }

  // Messages about a pause, for the fault of the device.
  var probeMessage: String { "it is polled every \(probeInterval / .second) s" }
  var lowMessage: String {
    "the 12 V battery is low (min-voltage = \(minVoltage)): polling is suspended until it reaches \(((minVoltage + Self.hysteresis) * 10).rounded() / 10) V"
  }
  var idleMessage: String { "the vehicle has not been used for \(idleAfter / .second) s: \(probeMessage)" }
}
