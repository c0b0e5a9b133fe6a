// Determines whether a charger is charging the battery: as reported by the vehicle, or derived from the battery current while the vehicle
// is stationary.

struct ChargeDetection: Sendable {
  /// The charge since the vehicle began to charge; nil while it is not charging.
  private(set) var onset: ChargeOnset?
  /// Whether charging is derived from the current, because the vehicle does not report it.
  private(set) var isDerived = true
  private var flag: Bool?
  private var acPlug: Bool?
  private var dcPlug: Bool?

  /// Whether the vehicle is charging as it reports itself; nil if it does not report that.
  var isReported: Bool? { flag }

  /// Whether a plug is connected, as last reported.
  var isPlugged: Bool { acPlug == true || dcPlug == true }

  /// The type of charger, if the vehicle reports the plug.
  var type: Statistics.ChargeType? { dcPlug == true ? .dc : acPlug == true ? .ac : nil }

  /// Handles a value. Returns whether it can show that the vehicle is charging, or has stopped. `hasCurrent`: the current is known, so that
  /// the power shows nothing more.
  @inline(__always)
  mutating func update(_ role: Role, _ value: Double?, hasCurrent: Bool) -> Bool {
    switch role {
    case .batteryCurrent, .batteryVoltage: return true
    case .batteryPower: return !hasCurrent
    case .charging:
      flag = value.map { $0 != 0 }
      return true
    case .acPlug: acPlug = value.map { $0 != 0 } ?? acPlug
    case .dcPlug: dcPlug = value.map { $0 != 0 } ?? dcPlug
    default: break
    }
    return false
  }

  /// Whether the vehicle is charging according to its own report or, if there is none, to the current in A while it is stationary.
  @inline(__always)
  func indicatesCharge(current: Double?, isStationary: Bool, _ threshold: Double) -> Bool {
    flag ?? (isStationary && (current.map { $0 <= threshold } ?? false))
  }

  /// Handles a sample that indicates a charge. Returns whether the charge is certain: just after the vehicle has stopped, the current may
  /// still come from regenerative braking.
  mutating func confirm(_ meter: Meter, stationaryTime: Int64, at now: Int64, _ rules: PeriodRules) -> Bool {
    isDerived = flag == nil
    if onset == nil { onset = ChargeOnset(start: meter.totals) }
    onset?.charge(meter)
    guard isDerived else { return true }
    return stationaryTime >= rules.chargeStationaryTime && now - (onset?.start.time ?? now) >= Limits.chargeConfirmation
  }

  // Totals are large, and this is called for most samples.
  mutating func stop() { if onset != nil { onset = nil } }

  /// Fills in the readings that were missing at the start.
  mutating func fill(from totals: Totals) { onset?.start.fill(from: totals) }

  /// Discards the state of charging before a gap, a trip or a clock step.
  mutating func interrupt() { (onset, flag) = (nil, nil) }
}

/// A charge from its first sample until it is certain.
struct ChargeOnset: Sendable {
  var start: Totals
  private(set) var power = ChargingPower()
  private var last: (time: Int64, energyIn: Double)

  init(start: Totals) {
    self.start = start
    last = (start.time, start.energyIn)
  }

  /// Handles a sample that shows charging.
  mutating func charge(_ meter: Meter) {
    let now = (time: meter.totals.time, energyIn: meter.totals.energyIn)
    power.add(now.time - last.time, energy: now.energyIn - last.energyIn, peak: meter.power.map { -$0 })
    last = now
  }
}

/// The highest and the mean power while a vehicle charges.
struct ChargingPower: Sendable {
  /// The time in µs without pauses, and the energy in kWh that was charged in this time.
  private(set) var time: Int64 = 0
  private var energy = 0.0
  /// kW
  private(set) var max: Double?

  /// The mean power in kW; nil if the vehicle has not charged.
  var mean: Double? { time > 0 ? energy / (Double(time) / 3.6e9) : nil }

  /// Adds the time in µs and the energy in kWh since the last sample that showed charging, unless this is a pause, and the highest power in
  /// kW.
  @inline(__always)
  mutating func add(_ elapsed: Int64, energy charged: Double, peak: Double?) {
    if elapsed <= Limits.sampleAge {
      time += elapsed
      energy += charged
    }
    if let peak { max = Swift.max(max ?? 0, peak) }
  }

  /// Adds the power at another time.
  mutating func add(_ other: ChargingPower) {
    time += other.time
    energy += other.energy
    if let peak = other.max { max = Swift.max(max ?? 0, peak) }
  }
}
