// The signals of VSS 6.0 that properties of cars and receivers give. Where VSS has another sign, unit or origin than the property, the row
// converts it. What VSS has no path for, and what several properties would have to be combined for, is omitted; so are boards, toys and
// other devices, which VSS does not cover.
// Source: as VSSSignal.swift; the differences in sign are in the descriptions of the signals there: positive currents charge the battery.

import Protocols

public enum VSSTable {
  /// The kind of drive, on which the meaning of some properties depends.
  private enum Drive { case any, electric, combustion }

  private struct Row: Sendable {
    var property: String
    /// The unit that the property must have; nil if it has none.
    var unit: String?
    var signal: VSSSignal
    var drive = Drive.any
  }

  /// The signals of a property with this unit. `properties` are the names of all properties of its device.
  public static func signals(for property: String, unit: String?, of properties: some Sequence<String>) -> [VSSSignal] {
    guard let rows = rows[property] else { return [] }
    let drive: Drive = properties.contains("state-of-charge") ? .electric : .combustion
    return rows.filter { $0.unit == unit && ($0.drive == .any || $0.drive == drive) }.map(\.signal)
  }

  /// All signals, for documentation and tests.
  public static var all: [(property: String, unit: String?, signal: VSSSignal)] {
    table.map { ($0.property, $0.unit, $0.signal) }
  }

  private static let rows = Dictionary(grouping: table, by: \.property)

  private static func row(
    _ property: String, _ unit: String?, _ path: String, _ vssUnit: String?, _ conversion: VSSSignal.Conversion = .number(),
    _ drive: Drive = .any
  ) -> Row {
    Row(property: property, unit: unit, signal: VSSSignal(path, vssUnit, conversion), drive: drive)
  }

  private static let battery = "Powertrain.TractionBattery"
  private static let engine = "Powertrain.CombustionEngine"
  private static let percent = VSSSignal.Conversion.integer(0...100)
  private static let word: ClosedRange<Double> = 0...65_535

  private static let table: [Row] =
    driving + electric + combustion + wheels + [
      row("indoor-temperature", "°C", "Cabin.HVAC.AmbientAirTemperature", "Celsius"),
      row("outdoor-temperature", "°C", "Exterior.AirTemperature", "Celsius"),
      row("ambient-temperature", "°C", "Exterior.AirTemperature", "Celsius"),
      row("aux-battery-voltage", "V", "LowVoltageBattery.CurrentVoltage", "V"),
      // Positive: out of the battery; in VSS into it.
      row("aux-battery-current", "A", "LowVoltageBattery.CurrentCurrent", "A", .number(-1)),
      row("dtc-count", nil, "Diagnostics.DTCCount", nil, .integer(0...255)),
      row("latitude", "°", "CurrentLocation.Latitude", "degrees"), row("longitude", "°", "CurrentLocation.Longitude", "degrees"),
      row("altitude", "m", "CurrentLocation.Altitude", "m"), row("track", "°", "CurrentLocation.Heading", "degrees"),
      row("horizontal-accuracy", "m", "CurrentLocation.HorizontalAccuracy", "m"),
    ]

  private static let driving = [
    // VSS has no sign for reverse.
    row("speed", "km/h", "Speed", "km/h", .magnitude), row("speed", "km/h", "IsMoving", nil, .isNonzero),
    row("odometer", "km", "TraveledDistance", "m", .integer(0...4_294_967_295, factor: 1000)),
    row("vin", nil, "VehicleIdentification.VIN", nil, .text),
    row("ignition", nil, "LowVoltageSystemState", nil, .words(["true": .string("ON"), "false": .string("OFF")])),
    row("pedal-position", "%", "Chassis.Accelerator.PedalPosition", "percent", percent),
    // An automatic transmission: VSS has no park as a current gear, and selects park and drive by the numbers 126 and 127.
    row(
      "gear", nil, "Powertrain.Transmission.CurrentGear", nil,
      .words(["reverse": .int(-1), "neutral": .int(0), "drive": .int(1)])),
    row(
      "gear", nil, "Powertrain.Transmission.SelectedGear", nil,
      .words(["park": .int(126), "reverse": .int(-1), "neutral": .int(0), "drive": .int(127)])),
  ]

  private static let electric = [
    row("rpm", "rpm", "Powertrain.ElectricMotor.Speed", "rpm", .number(), .electric),
    row("state-of-charge", "%", "\(battery).StateOfCharge.Current", "percent"),
    row("state-of-charge-display", "%", "\(battery).StateOfCharge.Displayed", "percent"),
    row("remaining-energy", "kWh", "\(battery).StateOfCharge.CurrentEnergy", "kWh"),
    row("state-of-health", "%", "\(battery).StateOfHealth", "percent"),
    row("battery-voltage", "V", "\(battery).CurrentVoltage", "V"),
    // Negative: charging; in VSS positive.
    row("battery-current", "A", "\(battery).CurrentCurrent", "A", .number(-1)),
    row("battery-power", "kW", "\(battery).CurrentPower", "W", .number(-1000)),
    row("battery-temperature-max", "°C", "\(battery).Temperature.Max", "Celsius"),
    row("battery-temperature-min", "°C", "\(battery).Temperature.Min", "Celsius"),
    row("cell-voltage-max", "V", "\(battery).CellVoltage.Max", "V"), row("cell-voltage-min", "V", "\(battery).CellVoltage.Min", "V"),
    // VSS counts cells from 0.
    row("cell-voltage-max-cell", nil, "\(battery).CellVoltage.IdMax", nil, .integer(word, offset: -1)),
    row("cell-voltage-min-cell", nil, "\(battery).CellVoltage.IdMin", nil, .integer(word, offset: -1)),
    row("charge-in", "Ah", "\(battery).AccumulatedChargedThroughput", "Ah"),
    row("charge-out", "Ah", "\(battery).AccumulatedConsumedThroughput", "Ah"),
    row("energy-in", "kWh", "\(battery).AccumulatedChargedEnergy", "kWh"),
    row("energy-out", "kWh", "\(battery).AccumulatedConsumedEnergy", "kWh"),
    row("charging", nil, "\(battery).Charging.IsCharging", nil, .bool), row("main-relay", nil, "\(battery).IsPowerConnected", nil, .bool),
    row("dc-dc-temperature", "°C", "\(battery).DCDC.Temperature", "Celsius"),
  ]

  private static let combustion = [
    row("rpm", "rpm", "\(engine).Speed", "rpm", .number(), .combustion),
    row("rpm", "rpm", "\(engine).IsRunning", nil, .isNonzero, .combustion),
    row("coolant-temperature", "°C", "\(engine).EngineCoolant.Temperature", "Celsius"),
    row("oil-temperature", "°C", "\(engine).EngineOil.Temperature", "Celsius"),
    row("air-flow", "g/s", "\(engine).MAF", "g/s", .integer(word)), row("intake-pressure", "kPa", "\(engine).MAP", "kPa", .integer(word)),
    row("throttle-position", "%", "\(engine).TPS", "percent", percent),
    row("engine-time", "s", "\(engine).EngineHours", "h", .number(1.0 / 3600)),
    row("engine-idle-time", "s", "\(engine).IdleHours", "h", .number(1.0 / 3600)),
    row("fuel-level", "%", "Powertrain.FuelSystem.RelativeLevel", "percent", percent),
  ]

  private static let wheels = [("front", 1), ("rear", 2)].flatMap { end, axle in
    [("left", "Left"), ("right", "Right")].flatMap { side, name in
      let (place, wheel) = ("\(end)-\(side)", "Chassis.Axle.Row\(axle).Wheel.\(name)")
      return [
        row("wheel-speed-\(place)", "km/h", "\(wheel).Speed", "km/h", .magnitude),
        row("tyre-pressure-\(place)", "kPa", "\(wheel).Tire.Pressure", "kPa", .integer(word)),
        row("tyre-temperature-\(place)", "°C", "\(wheel).Tire.Temperature", "Celsius"),
      ]
    }
  }
}
