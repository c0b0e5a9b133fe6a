// Filters the values of a device, and accumulates them in `Totals`.

struct Meter: Sendable {
  private(set) var totals: Totals
  /// The latest readings, including those before a gap.
  var known: Totals {
    var known = totals
    if let readingsBeforeGap { known.fill(from: readingsBeforeGap) }
    return known
  }
  private var readingsBeforeGap: Totals?
  /// Whether a quantity without a reading received its first one, or the odometer received any.
  var hasNewReading = false
  /// The current of the battery in A; nil if unknown.
  private(set) var current: Double?
  private(set) var power: Double?
  private var currentAt = Int64.min
  private(set) var odometer = Counter(resolution: 1, maxPerSecond: 400.0 / 3600, canRestart: false)
  private(set) var counterOut = Counter(resolution: 0.1, maxPerSecond: 600.0 / 3600, canRestart: true)
  private(set) var counterIn = Counter(resolution: 0.1, maxPerSecond: 600.0 / 3600, canRestart: true)
  private var voltage: Double?
  private var speedIntegral = Trapezoid()
  private var powerIntegral = Trapezoid()
  private var rateIntegral = Trapezoid()
  private var massIntegral = Trapezoid()
  private var airIntegral = Trapezoid()
  private var lambda: Double?
  private var fuelType: Fuel?
  private var ignitionType: Fuel?
  private var stateOfChargeFilter = PlausibleValue(0...100, slack: 5, slope: 0.2)
  private var displayedStateOfChargeFilter = PlausibleValue(0...100, slack: 5, slope: 0.2)
  private var fuelLevelFilter = PlausibleValue(0...100, slack: 25, slope: 0.2)
  private var batteryTemperatureFilter = PlausibleValue(-60...120, slack: 5, slope: 0.2)
  private var outdoorTemperatureFilter = PlausibleValue(-60...70, slack: 5, slope: 0.2)

  init(time: Int64) { totals = Totals(time: time) }

  /// Whether power is computed from current and voltage.
  func usesCurrent(at now: Int64) -> Bool { current != nil && voltage != nil && now - currentAt <= Limits.sampleAge }

  /// Discards the readings after a gap, because they may be out of date. `known` still contains them.
  mutating func forgetReadings() {
    readingsBeforeGap = known
    totals.forgetReadings()
    let filters = [
      \Meter.stateOfChargeFilter, \.displayedStateOfChargeFilter, \.fuelLevelFilter, \.batteryTemperatureFilter,
      \.outdoorTemperatureFilter,
    ]
    for filter in filters { self[keyPath: filter].forget() }
  }

  mutating func advance(to now: Int64) { totals.time = now }

  /// Adds an accepted speed in km/h.
  mutating func addSpeed(_ speed: Double, at now: Int64) {
    if let step = speedIntegral.update(speed, at: now) { totals.distance += step.positive }
  }

  /// Adds a time during which the state of motion is unknown. `speed` is the higher of the speeds before and after it, in km/h.
  mutating func addUnknown(_ time: Int64, speed: Double) {
    totals.unknownTime += time
    totals.unknownDistance += speed * Double(time) / 3.6e9
  }

  /// Adds a time in motion.
  mutating func addDriven(_ time: Int64) { totals.drivenTime += time }

  mutating func update(_ role: Role, _ value: Double?, isStationary: Bool, at now: Int64) {
    switch role {
    case .batteryCurrent: updateCurrent(value, isStationary: isStationary, at: now)
    case .batteryVoltage: updateVoltage(value, isStationary: isStationary, at: now)
    case .batteryPower:
      // Current and voltage take precedence: they are measured, and the reported power is computed from them.
      guard !usesCurrent(at: now) else { return }
      if let value, abs(value) <= 3300 { addPower(value, isStationary, now) } else { stopPower() }
    case .energyOut:
      if let value, counterOut.update(value, at: now) { Self.set(&totals.countedOut, counterOut.total, &hasNewReading) }
    case .energyIn:
      if let value, counterIn.update(value, at: now) { Self.set(&totals.countedIn, counterIn.total, &hasNewReading) }
    case .odometer:
      if let value, odometer.update(value, at: now) {
        hasNewReading = true
        totals.odometer = Totals.OdometerReading(
          total: odometer.total, reported: value, distance: totals.distance, unknownTime: totals.unknownTime)
      }
    case .stateOfCharge:
      if let value, stateOfChargeFilter.update(value, at: now) { Self.set(&totals.stateOfCharge, value, &hasNewReading) }
    case .displayedStateOfCharge:
      if let value, displayedStateOfChargeFilter.update(value, at: now) {
        Self.set(&totals.displayedStateOfCharge, value, &hasNewReading)
      }
    case .batteryTemperature:
      if let value, batteryTemperatureFilter.update(value, at: now) { Self.set(&totals.batteryTemperature, value, &hasNewReading) }
    case .outdoorTemperature:
      if let value, outdoorTemperatureFilter.update(value, at: now) { Self.set(&totals.outdoorTemperature, value, &hasNewReading) }
    default: updateFuel(role, value, now)
    }
  }

  @inline(__always)
  mutating func updateCurrent(_ value: Double?, isStationary: Bool, at now: Int64) {
    current = value.flatMap { Limits.current ~= $0 ? $0 : nil }
    currentAt = now
    addMeasuredPower(isStationary, now)
  }

  @inline(__always)
  mutating func updateVoltage(_ value: Double?, isStationary: Bool, at now: Int64) {
    voltage = value.flatMap { Limits.voltage ~= $0 ? $0 : nil }
    addMeasuredPower(isStationary, now)
  }

  @inline(__always)
  private mutating func addMeasuredPower(_ isStationary: Bool, _ now: Int64) {
    guard let current, let voltage else { return stopPower() }
    addPower(current * voltage / 1000, isStationary, now)
  }

  @inline(__always)
  private static func set(_ reading: inout Double?, _ value: Double, _ isNew: inout Bool) {
    if reading == nil { isNew = true }
    reading = value
  }

  private mutating func addPower(_ new: Double, _ isStationary: Bool, _ now: Int64) {
    power = new
    guard let step = powerIntegral.update(new, at: now) else { return }
    totals.energyOut += step.positive
    totals.energyIn += step.negative
    totals.powerTime += step.time
    if isStationary { totals.standingEnergy += step.positive - step.negative }
  }

  private mutating func stopPower() {
    power = nil
    powerIntegral.interrupt()
  }

  private mutating func updateFuel(_ role: Role, _ value: Double?, _ now: Int64) {
    switch role {
    case .fuelRate: Self.add(value.flatMap { 0...500 ~= $0 ? $0 : nil }, to: &totals.fuelByRate, by: &rateIntegral, now)
    case .fuelMassRate:
      let rate = value.flatMap { (fuelType ?? ignitionType)?.rate(mass: $0) }
      Self.add(rate, to: &totals.fuelByMass, by: &massIntegral, now)
    case .airFlow:
      let rate = value.flatMap { (fuelType ?? ignitionType)?.rate(airFlow: $0, lambda: lambda) }
      Self.add(rate, to: &totals.fuelByAir, by: &airIntegral, now)
    case .lambda: lambda = value
    case .fuelType: fuelType = value.flatMap(Fuel.init(rawValue:))
    case .ignitionType: ignitionType = value.flatMap(Fuel.init(rawValue:))
    case .fuelLevel: if let value, fuelLevelFilter.update(value, at: now) { Self.set(&totals.fuelLevel, value, &hasNewReading) }
    default: break
    }
  }

  private static func add(_ rate: Double?, to sum: inout Totals.Integral, by integral: inout Trapezoid, _ now: Int64) {
    guard let rate, rate >= 0 else { return integral.interrupt() }
    guard let step = integral.update(rate, at: now) else { return }
    sum.sum += step.positive
    sum.time += step.time
  }
}
