// Determines whether a charger is charging the battery: as reported by the vehicle, or derived from the battery current while the vehicle
// is stationary.

struct ChargeDetection: Sendable {
  /// The totals when the vehicle began to charge; nil while it is not charging.
  private(set) var since: Totals?
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
  mutating func confirm(_ totals: @autoclosure () -> Totals, stationaryTime: Int64, at now: Int64, _ rules: PeriodRules) -> Bool {
    isDerived = flag == nil
    if since == nil { since = totals() }
    guard isDerived else { return true }
    return stationaryTime >= rules.chargeStationaryTime && now - (since?.time ?? now) >= Limits.chargeConfirmation
  }

  // Totals are large, and this is called for most samples.
  mutating func stop() { if since != nil { since = nil } }

  /// Fills in the readings that were missing at the start.
  mutating func fill(from totals: Totals) { since?.fill(from: totals) }

  /// Discards the state of charging before a gap, a trip or a clock step.
  mutating func interrupt() { (since, flag) = (nil, nil) }
}
