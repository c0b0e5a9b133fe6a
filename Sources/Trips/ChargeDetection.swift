// Whether the battery is charged by a charger: as the vehicle reports it, or concluded from the current while it stands.

struct ChargeDetection: Sendable {
  /// When the current stretch of charging began; nil while it does not charge.
  private(set) var since: Totals?
  /// The vehicle does not report charging.
  private(set) var isDerived = true
  private var flag: Bool?
  private var acPlug: Bool?
  private var dcPlug: Bool?

  /// Whether a plug is connected, as last reported.
  var isPlugged: Bool { acPlug == true || dcPlug == true }

  /// The type of charger, if the vehicle reports the plug.
  var type: Statistics.ChargeType? { dcPlug == true ? .dc : acPlug == true ? .ac : nil }

  /// Handles a value; returns whether it says if the vehicle charges.
  @inline(__always)
  mutating func update(_ role: Role, _ value: Double?) -> Bool {
    switch role {
    case .batteryCurrent, .batteryPower: return true
    case .charging:
      flag = value.map { $0 != 0 }
      return true
    case .acPlug: acPlug = value.map { $0 != 0 } ?? acPlug
    case .dcPlug: dcPlug = value.map { $0 != 0 } ?? dcPlug
    default: break
    }
    return false
  }

  /// Whether the vehicle charges according to its own report, or to the current in A while it stands.
  @inline(__always)
  func indicatesCharge(current: Double?, stands: Bool, _ maxCurrent: Double) -> Bool {
    flag ?? (stands && (current.map { $0 <= maxCurrent } ?? false))
  }

  /// Handles a sample that indicates a charge; returns whether that is certain. The current at the start of standing is that of the last
  /// braking.
  mutating func confirm(_ totals: Totals, standingTime: Int64, _ rules: PeriodRules) -> Bool {
    isDerived = flag == nil
    let start = since ?? totals
    since = start
    guard isDerived else { return true }
    return standingTime >= rules.chargeStandingTime && totals.time - start.time >= Limits.chargeConfirmation
  }

  mutating func stop() { since = nil }

  /// Completes the readings at the start.
  mutating func fill(from totals: Totals) { since?.fill(from: totals) }

  /// Forgets a stretch of charging before a gap.
  mutating func interrupt() { (since, flag) = (nil, nil) }
}
