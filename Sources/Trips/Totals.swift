// The sums of a device's values since the detector started, which only grow, and the latest readings. A period is the difference between
// two such snapshots, so that its start can be moved back and two periods can be joined.

struct Totals: Sendable {
  /// When the snapshot was taken.
  var time: Int64

  /// The integral of |speed|, in km.
  var distance = 0.0
  /// The time in motion.
  var drivenTime: Int64 = 0
  /// The time without a known state of motion.
  var unknownTime: Int64 = 0
  /// The distance in km driven in the unknown time, if the vehicle drove at the higher of the speeds before and after that time.
  var unknownDistance = 0.0

  /// The integral of power out of the battery, in kWh.
  var energyOut = 0.0
  /// The integral of power into the battery, in kWh.
  var energyIn = 0.0
  /// The time that these two integrals cover.
  var powerTime: Int64 = 0
  /// The part of `energyOut` minus `energyIn` that accrued while the vehicle was stationary.
  var standingEnergy = 0.0

  /// The fuel in litres, according to each source.
  var fuelByRate = Integral()
  var fuelByMass = Integral()
  var fuelByAir = Integral()

  /// The energy counters in kWh; nil until they are read after a gap.
  var countedOut: Double?
  var countedIn: Double?
  var odometer: OdometerReading?
  var stateOfCharge: Double?
  var displayedStateOfCharge: Double?
  var fuelLevel: Double?
  var batteryTemperature: Double?
  var outdoorTemperature: Double?

  /// An integral, and the time that it covers.
  struct Integral: Sendable {
    var sum = 0.0
    var time: Int64 = 0

    static func - (lhs: Integral, rhs: Integral) -> Integral { Integral(sum: lhs.sum - rhs.sum, time: lhs.time - rhs.time) }
  }

  /// A reading of the odometer, and the integrals of speed at that time.
  struct OdometerReading: Sendable {
    /// The increments since the detector started, and the value as reported, in km.
    var total: Double
    var reported: Double
    var distance: Double
    var unknownTime: Int64
  }

  init(time: Int64) { self.time = time }

  /// Fills in readings that were missing when the snapshot was taken.
  mutating func fill(from later: Totals) {
    countedOut = countedOut ?? later.countedOut
    countedIn = countedIn ?? later.countedIn
    odometer = odometer ?? later.odometer
    stateOfCharge = stateOfCharge ?? later.stateOfCharge
    displayedStateOfCharge = displayedStateOfCharge ?? later.displayedStateOfCharge
    fuelLevel = fuelLevel ?? later.fuelLevel
    batteryTemperature = batteryTemperature ?? later.batteryTemperature
    outdoorTemperature = outdoorTemperature ?? later.outdoorTemperature
  }

  /// Discards the readings, because the vehicle may have been used since.
  mutating func forgetReadings() {
    (countedOut, countedIn, odometer, stateOfCharge, displayedStateOfCharge) = (nil, nil, nil, nil, nil)
    (fuelLevel, batteryTemperature, outdoorTemperature) = (nil, nil, nil)
  }

  /// The state of charge in another snapshot and in this one, as the dashboard shows it if both have this value.
  func stateOfCharge(since other: Totals) -> Statistics.StartEnd {
    if let before = other.displayedStateOfCharge, let after = displayedStateOfCharge { return .init(before, after) }
    return .init(other.stateOfCharge ?? other.displayedStateOfCharge, stateOfCharge ?? displayedStateOfCharge)
  }

  /// The rise of the state of charge since another snapshot; nil if unknown.
  func chargeRise(since other: Totals) -> Double? {
    if let before = other.displayedStateOfCharge, let after = displayedStateOfCharge { return after - before }
    if let before = other.stateOfCharge, let after = stateOfCharge { return after - before }
    return nil
  }

  /// The distance in km since another snapshot that the odometer counted but the speed does not account for.
  func unexplainedDistance(since other: Totals) -> Double? {
    guard let odometer, let before = other.odometer else { return nil }
    return odometer.total - before.total - (odometer.distance - before.distance)
  }
}
