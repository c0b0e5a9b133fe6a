// Running totals for a device since the detector started, and its latest readings. All totals except `standingEnergy` only grow. A period
// is the difference between two such snapshots, so that its start can be moved back and two periods can be joined. Times are in µs.

struct Totals: Sendable {
  /// When the snapshot was taken, since the Unix epoch.
  var time: Int64

  /// The integral of |speed|, in km.
  var distance = 0.0
  /// The time in motion, in µs.
  var drivenTime: Int64 = 0
  /// The time without a known state of motion, in µs.
  var unknownTime: Int64 = 0
  /// The distance in km that the vehicle would have driven in the unknown time at the higher of the speeds before and after it.
  var unknownDistance = 0.0

  /// The integral of power out of the battery, in kWh.
  var energyOut = 0.0
  /// The integral of power into the battery, in kWh.
  var energyIn = 0.0
  /// The time that these two integrals cover, in µs.
  var powerTime: Int64 = 0
  /// The part of `energyOut` minus `energyIn`, in kWh, that accrued while the vehicle was stationary. It falls while the vehicle charges.
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

  /// An integral, and the time in µs that it covers.
  struct Integral: Sendable {
    var sum = 0.0
    var time: Int64 = 0

    static func - (lhs: Integral, rhs: Integral) -> Integral { Integral(sum: lhs.sum - rhs.sum, time: lhs.time - rhs.time) }
  }

  /// A reading of the odometer, and the totals `distance` and `unknownTime` at that time.
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

  /// Adopts the unknown time and distance of later totals.
  mutating func addUnknown(of later: Totals) { (unknownTime, unknownDistance) = (later.unknownTime, later.unknownDistance) }

  /// Discards the readings, because the vehicle may have been used since.
  mutating func forgetReadings() {
    (countedOut, countedIn, odometer, stateOfCharge, displayedStateOfCharge) = (nil, nil, nil, nil, nil)
    (fuelLevel, batteryTemperature, outdoorTemperature) = (nil, nil, nil)
  }

  /// The state of charge in % in an earlier snapshot and in this one: the displayed one if both snapshots have it.
  func stateOfCharge(since other: Totals) -> Statistics.StartEnd {
    if let before = other.displayedStateOfCharge, let after = displayedStateOfCharge { return .init(before, after) }
    return .init(other.stateOfCharge ?? other.displayedStateOfCharge, stateOfCharge ?? displayedStateOfCharge)
  }

  /// The rise of the state of charge since an earlier snapshot, in percentage points; nil if unknown.
  func chargeRise(since other: Totals) -> Double? {
    if let before = other.displayedStateOfCharge, let after = displayedStateOfCharge { return after - before }
    if let before = other.stateOfCharge, let after = stateOfCharge { return after - before }
    return nil
  }

  /// The distance in km since an earlier snapshot that the odometer counted but the integral of speed did not; nil if unknown.
  func unexplainedDistance(since other: Totals) -> Double? {
    guard let odometer, let before = other.odometer else { return nil }
    return odometer.total - before.total - (odometer.distance - before.distance)
  }
}
