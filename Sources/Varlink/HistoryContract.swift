// The types of the interface io.vehicled.history, shared by vehicled-history and its clients. The definition in
// io.vehicled.history.varlink is the contract; a test compares these structs with it.

import Protocols

/// The types of the messages on the socket of the history.
public enum HistoryContract {
  /// The interface that the methods belong to.
  public static let interface = "io.vehicled.history"
  /// The path of the socket, unless configured otherwise.
  public static let defaultSocket = "/run/vehicled-history/io.vehicled.history"

  /// One value: on the wire an object with exactly one field, whose name is the type.
  public typealias Value = Protocols.Value

  /// The recorded values of one property with one type and unit.
  public struct Series: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case id, device, property, type, unit }
    public var id: Int
    public var device: String
    public var property: String
    public var type: String
    public var unit: String?

    public init(id: Int, device: String, property: String, type: String, unit: String? = nil) {
      self.id = id
      self.device = device
      self.property = property
      self.type = type
      self.unit = unit
    }
  }

  /// One recorded value, or its absence with the reason.
  public struct Sample: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case series, time, value, reason }
    public var series: Int
    public var time: Int
    public var value: Value?
    public var reason: String?

    public init(series: Int, time: Int, value: Value? = nil, reason: String? = nil) {
      self.series = series
      self.time = time
      self.value = value
      self.reason = reason
    }
  }

  /// An interval of a plot.
  public struct PlotPoint: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case index, minimum, maximum, mean, last }
    public var index: Int
    public var minimum: Double
    public var maximum: Double
    public var mean: Double
    public var last: Double

    public init(index: Int, minimum: Double, maximum: Double, mean: Double, last: Double) {
      self.index = index
      self.minimum = minimum
      self.maximum = maximum
      self.mean = mean
      self.last = last
    }
  }

  /// A measured quantity with its error bound.
  public struct Quantity: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case value, bound, source }
    public var value: Double
    public var bound: Double
    public var source: String

    public init(value: Double, bound: Double, source: String) {
      self.value = value
      self.bound = bound
      self.source = source
    }
  }

  /// A trip, a charge or a parked period. io.vehicled.history.varlink documents the units.
  public struct Period: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable {
      case number, device, kind, start, end, zone, open, marks, journey, distance, drivenTime, standingTime, unknownTime, maximumSpeed
      case meanSpeed, energy, regenerated, standingEnergy, energyPer100Kilometres, fuel, fuelPer100Kilometres, startStateOfCharge
      case endStateOfCharge, startOdometer, endOdometer, startFuelLevel, endFuelLevel, startBatteryTemperature, endBatteryTemperature
      case startOutdoorTemperature, endOutdoorTemperature, charged, maximumPower, meanPower, chargingTime, chargeType
    }
    public var number: Int
    public var device: String
    public var kind: String
    public var start: Int
    public var end: Int
    public var zone: String
    public var open: Bool
    public var marks: [String]
    public var journey: Int?
    public var distance: Quantity?
    public var drivenTime: Double?
    public var standingTime: Double?
    public var unknownTime: Double?
    public var maximumSpeed: Double?
    public var meanSpeed: Double?
    public var energy: Quantity?
    public var regenerated: Quantity?
    public var standingEnergy: Double?
    public var energyPer100Kilometres: Quantity?
    public var fuel: Quantity?
    public var fuelPer100Kilometres: Quantity?
    public var startStateOfCharge: Double?
    public var endStateOfCharge: Double?
    public var startOdometer: Double?
    public var endOdometer: Double?
    public var startFuelLevel: Double?
    public var endFuelLevel: Double?
    public var startBatteryTemperature: Double?
    public var endBatteryTemperature: Double?
    public var startOutdoorTemperature: Double?
    public var endOutdoorTemperature: Double?
    public var charged: Quantity?
    public var maximumPower: Double?
    public var meanPower: Double?
    public var chargingTime: Double?
    public var chargeType: String?

    public init(
      number: Int, device: String, kind: String, start: Int, end: Int, zone: String, open: Bool, marks: [String], journey: Int? = nil,
      distance: Quantity? = nil, drivenTime: Double? = nil, standingTime: Double? = nil, unknownTime: Double? = nil,
      maximumSpeed: Double? = nil, meanSpeed: Double? = nil, energy: Quantity? = nil, regenerated: Quantity? = nil,
      standingEnergy: Double? = nil, energyPer100Kilometres: Quantity? = nil, fuel: Quantity? = nil, fuelPer100Kilometres: Quantity? = nil,
      startStateOfCharge: Double? = nil, endStateOfCharge: Double? = nil, startOdometer: Double? = nil, endOdometer: Double? = nil,
      startFuelLevel: Double? = nil, endFuelLevel: Double? = nil, startBatteryTemperature: Double? = nil,
      endBatteryTemperature: Double? = nil, startOutdoorTemperature: Double? = nil, endOutdoorTemperature: Double? = nil,
      charged: Quantity? = nil, maximumPower: Double? = nil, meanPower: Double? = nil, chargingTime: Double? = nil,
      chargeType: String? = nil
    ) {
      self.number = number
      self.device = device
      self.kind = kind
      self.start = start
      self.end = end
      self.zone = zone
      self.open = open
      self.marks = marks
      self.journey = journey
      self.distance = distance
      self.drivenTime = drivenTime
      self.standingTime = standingTime
      self.unknownTime = unknownTime
      self.maximumSpeed = maximumSpeed
      self.meanSpeed = meanSpeed
      self.energy = energy
      self.regenerated = regenerated
      self.standingEnergy = standingEnergy
      self.energyPer100Kilometres = energyPer100Kilometres
      self.fuel = fuel
      self.fuelPer100Kilometres = fuelPer100Kilometres
      self.startStateOfCharge = startStateOfCharge
      self.endStateOfCharge = endStateOfCharge
      self.startOdometer = startOdometer
      self.endOdometer = endOdometer
      self.startFuelLevel = startFuelLevel
      self.endFuelLevel = endFuelLevel
      self.startBatteryTemperature = startBatteryTemperature
      self.endBatteryTemperature = endBatteryTemperature
      self.startOutdoorTemperature = startOutdoorTemperature
      self.endOutdoorTemperature = endOutdoorTemperature
      self.charged = charged
      self.maximumPower = maximumPower
      self.meanPower = meanPower
      self.chargingTime = chargingTime
      self.chargeType = chargeType
    }
  }

  /// A stop during a trip, or an interruption of a charge.
  public struct Pause: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case start, end }
    public var start: Int
    public var end: Int

    public init(start: Int, end: Int) {
      self.start = start
      self.end = end
    }
  }

  /// The charging power at a state of charge.
  public struct CurvePoint: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case stateOfCharge, power }
    public var stateOfCharge: Int
    public var power: Double

    public init(stateOfCharge: Int, power: Double) {
      self.stateOfCharge = stateOfCharge
      self.power = power
    }
  }

  /// A configured alert and its state.
  public struct Alert: VarlinkParameters, Equatable {
    public enum CodingKeys: CodingKey, CaseIterable { case name, condition, state, since, text }
    public var name: String
    public var condition: String
    public var state: String
    public var since: Int
    public var text: String

    public init(name: String, condition: String, state: String, since: Int, text: String) {
      self.name = name
      self.condition = condition
      self.state = state
      self.since = since
      self.text = text
    }
  }
}
