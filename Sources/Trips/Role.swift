// Selects the properties from which periods are computed, by the names, types and units that the kinds of devices declare. All other
// properties are ignored.

import Protocols

/// What a property means for trips, charges and parked periods.
public enum Role: UInt8, Sendable, CaseIterable {
  /// km/h; negative is backwards.
  case speed
  /// km/h, from another ECU; used while `speed` is absent.
  case fallbackSpeed
  /// rpm of the drive motors: the vehicle is moving if they turn.
  case motorSpeed, secondMotorSpeed
  /// rpm of a combustion engine, which can idle.
  case engineSpeed
  /// A raw value of `Gear`.
  case gear
  /// 0 or 1.
  case ignition
  /// km, over the lifetime of the vehicle.
  case odometer
  /// %
  case stateOfCharge, displayedStateOfCharge
  /// Current in A, voltage in V, power in kW. Current and power are positive when the battery discharges.
  case batteryCurrent, batteryVoltage, batteryPower
  /// kWh into and out of the battery, over the lifetime of the vehicle or since the device was switched on.
  case energyIn, energyOut
  /// 0 or 1.
  case charging, acPlug, dcPlug
  /// °C
  case batteryTemperature, outdoorTemperature
  /// L/h
  case fuelRate
  /// g/s
  case fuelMassRate, airFlow
  case lambda
  /// %
  case fuelLevel
  /// A raw value of `Fuel`.
  case fuelType, ignitionType
  /// A raw value of `DeviceState`.
  case state
}

/// A gear, as far as it matters here.
enum Gear: Double, Sendable {
  case park, neutral, driving

  /// Park-or-neutral counts as park, because a car that uses it reports nothing else when parked.
  init(_ name: String) {
    switch name {
    case "park", "park-or-neutral", "p": self = .park
    case "neutral", "n": self = .neutral
    default: self = .driving
    }
  }
}

/// What the device is doing, from the name of its state.
public enum DeviceState: Double, Sendable {
  /// The vehicle responds.
  case responding
  /// The vehicle is not in use, or is asleep.
  case resting
  /// The link is up, but the vehicle does not respond.
  case silent
  /// There is no link.
  case down

  /// Creates the state for a state name of any kind of device. An unknown name means that the device responds.
  public init(_ name: String) {
    switch name {
    case "parked", "car-asleep", "adapter-asleep", "asleep": self = .resting
    case "car-silent", "silent", "no-car", "no-vesc", "off": self = .silent
    case "down", "connecting", "waiting", "starting", "detecting", "disconnected": self = .down
    default: self = .responding
    }
  }
}

/// A property with a role, and the factor that converts its unit to that of the role.
public struct Signal: Sendable, Equatable {
  public let role: Role
  public let scale: Double

  /// Creates the signal of a property with this name, type and unit; nil if periods do not depend on the property.
  public init?(property: String, type: ValueType, unit: String?) {
    guard let role = Self.role(property, type, unit), let scale = Self.scale(role, unit) else { return nil }
    (self.role, self.scale) = (role, scale)
  }

  /// The signal of the device's state.
  public static let state = Signal(role: .state, scale: 1)

  private init(role: Role, scale: Double) { (self.role, self.scale) = (role, scale) }

  /// Converts a reading to a sample; a value that is invalid for this signal counts as absent.
  public func sample(_ content: Reading.Content, at time: Int64) -> Sample {
    guard case .value(let value) = content else { return Sample(time, role, nil) }
    return Sample(time, role, number(value))
  }

  /// Converts a number to the unit of the role; NaN if it is not finite.
  @inlinable public func value(_ number: Double) -> Double { number.isFinite ? number * scale : .nan }

  private func scaled(_ number: Double) -> Double? { number.isFinite ? number * scale : nil }

  private func number(_ value: Value) -> Double? {
    switch value {
    case .bool(let flag): flag ? 1 : 0
    case .int(let number): scaled(Double(number))
    case .float(let number): scaled(number)
    case .string(let name): code(name)
    case .list: nil
    }
  }

  private func code(_ name: String) -> Double? {
    switch role {
    case .gear: Gear(name).rawValue
    case .state: DeviceState(name).rawValue
    case .fuelType, .ignitionType: Fuel(name).rawValue
    default: nil
    }
  }

  private static func role(_ property: String, _ type: ValueType, _ unit: String?) -> Role? {
    switch property {
    case "speed": .speed
    case "speed-brakes": .fallbackSpeed
    // Motors report signed integers; the engine speed of SAE J1979 has a resolution of 0.25 rpm.
    case "rpm": type == .int ? .motorSpeed : .engineSpeed
    case "rpm-2": .secondMotorSpeed
    case "gear": type == .string ? .gear : nil
    case "ignition": .ignition
    case "odometer", "total-distance": .odometer
    case "state-of-charge", "battery", "hybrid-battery-remaining": unit == "%" ? .stateOfCharge : nil
    case "state-of-charge-display": .displayedStateOfCharge
    case "battery-current": .batteryCurrent
    case "battery-voltage": .batteryVoltage
    case "battery-power": .batteryPower
    case "energy-in", "energy-regenerated": .energyIn
    case "energy-out", "energy-used": .energyOut
    case "charging": .charging
    case "ac-plug": .acPlug
    case "dc-plug": .dcPlug
    case "battery-temperature-max": .batteryTemperature
    case "outdoor-temperature", "ambient-temperature": .outdoorTemperature
    case "fuel-rate": .fuelRate
    case "fuel-mass-rate": .fuelMassRate
    case "air-flow", "air-flow-a": .airFlow
    case "commanded-lambda": .lambda
    case "fuel-level": .fuelLevel
    case "fuel-type": .fuelType
    case "ignition-type": .ignitionType
    default: nil
    }
  }

  /// The factor from a unit to that of the role; nil if the unit measures something else.
  private static func scale(_ role: Role, _ unit: String?) -> Double? {
    switch (role, unit) {
    case (.speed, "km/h"), (.fallbackSpeed, "km/h"), (.motorSpeed, "rpm"), (.secondMotorSpeed, "rpm"), (.engineSpeed, "rpm"),
      (.odometer, "km"), (.batteryCurrent, "A"), (.batteryVoltage, "V"), (.batteryPower, "kW"), (.energyIn, "kWh"), (.energyOut, "kWh"),
      (.fuelRate, "L/h"), (.fuelMassRate, "g/s"), (.airFlow, "g/s"), (.batteryTemperature, "°C"), (.outdoorTemperature, "°C"),
      (.stateOfCharge, "%"), (.displayedStateOfCharge, "%"), (.fuelLevel, "%"):
      1
    case (.batteryPower, "W"), (.energyIn, "Wh"), (.energyOut, "Wh"), (.odometer, "m"): 0.001
    case (.speed, "mph"), (.odometer, "mi"): 1.609344
    case (.gear, nil), (.ignition, nil), (.charging, nil), (.acPlug, nil), (.dcPlug, nil), (.lambda, nil), (.fuelType, nil),
      (.ignitionType, nil):
      1
    default: nil
    }
  }
}
