// The figures of a period. A figure that the vehicle does not report is nil, never 0.

/// A measured quantity with its error bound.
public struct Quantity: Sendable, Equatable {
  public enum Source: String, Sendable {
    /// The difference of the odometer, refined by the integral of speed.
    case odometer
    /// The integral of speed.
    case speed
    /// The difference of energy counters, refined by the integral of power.
    case counters
    /// The integral of power.
    case power
    /// The integral of the fuel rate.
    case fuelRate = "fuel-rate"
    /// The integral of the fuel rate by mass.
    case fuelMassRate = "fuel-mass-rate"
    /// The integral of the fuel rate that is computed from the air flow.
    case airFlow = "air-flow"
    /// The difference of the fuel level.
    case fuelLevel = "fuel-level"
  }

  public var value: Double
  /// The true value is within `value` ± `bound`.
  public var bound: Double
  public var source: Source

  public init(_ value: Double, bound: Double, source: Source) { (self.value, self.bound, self.source) = (value, bound, source) }

  /// The quantity per 100 km; nil if the distance does not exceed its bound.
  func per100Kilometres(_ distance: Quantity?) -> Quantity? {
    guard let distance, distance.value > max(distance.bound, 0.01) else { return nil }
    let (low, high) = (distance.value - distance.bound, distance.value + distance.bound)
    let ratio = value / distance.value
    let edges = [(value - bound) / low, (value - bound) / high, (value + bound) / low, (value + bound) / high]
    let error = edges.reduce(0) { max($0, abs($1 - ratio)) }
    return Quantity(ratio * 100, bound: error * 100, source: source)
  }
}

/// The figures of a trip, a charge or a parked period.
public struct Statistics: Sendable, Equatable {
  /// A value at the start and at the end of a period.
  public struct StartEnd: Sendable, Equatable {
    public var start: Double?
    public var end: Double?

    public init(_ start: Double? = nil, _ end: Double? = nil) { (self.start, self.end) = (start, end) }
  }

  /// The charging power at one percent of the state of charge.
  public struct CurvePoint: Sendable, Equatable {
    /// The state of charge, in whole percent.
    public var stateOfCharge: Int
    /// The mean power, in kW.
    public var power: Double
  }

  public enum ChargeType: String, Sendable { case ac, dc }

  /// km
  public var distance: Quantity?
  /// Microseconds in motion.
  public var drivenTime: Int64 = 0
  /// Microseconds at a standstill.
  public var standingTime: Int64 = 0
  /// Microseconds without data.
  public var unknownTime: Int64 = 0
  /// km/h
  public var maxSpeed: Double?
  /// km/h, over the driven time.
  public var meanSpeed: Double?
  /// kWh out of the battery minus kWh into it; negative if more was charged.
  public var energy: Quantity?
  /// kWh into the battery during a trip.
  public var regenerated: Quantity?
  /// kWh used while stationary, from the integral of power.
  public var standingEnergy: Double?
  /// kWh per 100 km; multiply by 10 for Wh per km.
  public var energyPer100Kilometres: Quantity?
  /// L
  public var fuel: Quantity?
  /// L per 100 km
  public var fuelPer100Kilometres: Quantity?
  /// %
  public var stateOfCharge = StartEnd()
  /// km
  public var odometer = StartEnd()
  /// %
  public var fuelLevel = StartEnd()
  /// °C
  public var batteryTemperature = StartEnd()
  /// °C
  public var outdoorTemperature = StartEnd()
  /// kWh into the battery from a charger.
  public var charged: Quantity?
  /// kW into the battery.
  public var maxChargePower: Double?
  /// kW into the battery, over the charging time.
  public var meanChargePower: Double?
  /// Microseconds during which the data showed the battery charging.
  public var chargingTime: Int64?
  public var chargeType: ChargeType?
  public var chargeCurve: [CurvePoint] = []

  public init() {}
}
