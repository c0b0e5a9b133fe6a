// Numeric PIDs with bytes, formulas and units of SAE J1979.

extension StandardParameter {
  static let air: [StandardParameter] = [
    StandardParameter(0x04, 1, percent("engine-load", "Calculated engine load")),
    StandardParameter(0x05, 1, celsius("coolant-temperature", "Engine coolant temperature")),
    StandardParameter(0x06, 1, trim("short-fuel-trim-1", "Short-term fuel trim, bank 1; positive adds fuel")),
    StandardParameter(0x07, 1, trim("long-fuel-trim-1", "Long-term fuel trim, bank 1; positive adds fuel")),
    StandardParameter(0x08, 1, trim("short-fuel-trim-2", "Short-term fuel trim, bank 2; positive adds fuel")),
    StandardParameter(0x09, 1, trim("long-fuel-trim-2", "Long-term fuel trim, bank 2; positive adds fuel")),
    StandardParameter(0x0A, 1, count("fuel-pressure", .u8(0), unit: "kPa", times: 3, "Fuel pressure (gauge)")),
    StandardParameter(
      0x0B, 1,
      .scaled(
        "intake-pressure", .u8(0), by: .intakePressure, unit: "kPa", decimals: 1, help: "Intake manifold absolute pressure")),
    StandardParameter(0x0C, 2, scaled("rpm", .u16(0), unit: "rpm", over: 4, decimals: 2, "Engine speed")),
    StandardParameter(0x0D, 1, count("speed", .u8(0), unit: "km/h", "Vehicle speed")),
    StandardParameter(
      0x0E, 1,
      scaled("timing-advance", .u8(0), unit: "°", over: 2, plus: -64, decimals: 1, "Timing advance before top dead centre, cylinder 1")),
    StandardParameter(0x0F, 1, celsius("intake-air-temperature", "Intake air temperature")),
    StandardParameter(
      0x10, 2,
      .scaled("air-flow", .u16(0), by: .airFlow, unit: "g/s", decimals: 2, help: "Mass air flow")),
    StandardParameter(0x11, 1, percent("throttle-position", "Absolute throttle position")),
  ]

  /// Oxygen sensors by number: narrow-band, wide-band by voltage, wide-band by current; then catalysts.
  static let sensors: [StandardParameter] =
    (1...8).flatMap { sensor in
      let name = "o2-sensor-\(sensor)"
      let number = UInt8(sensor - 1)
      return [
        StandardParameter(
          0x14 + number, 2, scaled("\(name)-voltage", .u8(0), unit: "V", over: 200, decimals: 3, "Voltage of oxygen sensor \(sensor)"),
          trim("\(name)-trim", "Short-term fuel trim from oxygen sensor \(sensor)", at: 1, absentAtTop: true)),
        StandardParameter(
          0x24 + number, 4, lambda("\(name)-lambda", "Air-fuel equivalence ratio (lambda) of oxygen sensor \(sensor)"),
          .scaled(
            "\(name)-wide-voltage", .u16(2), by: .sensorVoltage, unit: "V", decimals: 3,
            help: "Voltage of wide-band oxygen sensor \(sensor)")),
        StandardParameter(
          0x34 + number, 4,
          lambda("\(name)-current-lambda", "Air-fuel equivalence ratio (lambda) of oxygen sensor \(sensor), by its current"),
          .scaled(
            "\(name)-current", .u16(2), by: .sensorCurrent, unit: "mA", decimals: 3,
            help: "Pump current of wide-band oxygen sensor \(sensor)")),
      ]
    }
    + [(0x3C, "1-1"), (0x3D, "2-1"), (0x3E, "1-2"), (0x3F, "2-2")].map { number, place in
      StandardParameter(
        number, 2,
        scaled(
          "catalyst-temperature-\(place)", .u16(0), unit: "°C", over: 10, plus: -40, decimals: 1,
          "Catalyst temperature, bank and sensor \(place)")
      )
    }

  private static func lambda(_ name: String, _ help: String) -> DataRow {
    .scaled(name, .u16(0), by: .lambda, unit: nil, decimals: 4, help: help)
  }

  static let distances: [StandardParameter] = [
    StandardParameter(0x1F, 2, count("run-time", .u16(0), unit: "s", "Run time since engine start")),
    StandardParameter(0x21, 2, count("distance-with-mil", .u16(0), unit: "km", "Distance driven with the MIL on")),
    StandardParameter(
      0x22, 2,
      scaled(
        "fuel-rail-pressure-relative", .u16(0), unit: "kPa", times: 0.079, decimals: 1, "Fuel rail pressure relative to the intake manifold"
      )
    ),
    StandardParameter(0x23, 2, count("fuel-rail-pressure", .u16(0), unit: "kPa", times: 10, "Fuel rail pressure (gauge)")),
    StandardParameter(0x2C, 1, percent("egr-commanded", "Commanded exhaust gas recirculation")),
    StandardParameter(0x2D, 1, trim("egr-error", "Exhaust gas recirculation error")),
    StandardParameter(0x2E, 1, percent("evap-purge", "Commanded evaporative purge")),
    StandardParameter(0x2F, 1, percent("fuel-level", "Fuel level")),
    StandardParameter(0x30, 1, count("warm-ups-since-clear", .u8(0), "Warm-ups since the codes were cleared")),
    StandardParameter(0x31, 2, count("distance-since-clear", .u16(0), unit: "km", "Distance since the codes were cleared")),
    StandardParameter(
      0x32, 2, scaled("evap-pressure", .s16(0), unit: "Pa", over: 4, decimals: 2, "Evaporative system vapour pressure (gauge)")),
    StandardParameter(0x33, 1, count("barometric-pressure", .u8(0), unit: "kPa", "Absolute barometric pressure")),
    StandardParameter(0x4D, 2, count("time-with-mil", .u16(0), unit: "min", "Engine run time with the MIL on")),
    StandardParameter(0x4E, 2, count("time-since-clear", .u16(0), unit: "min", "Time since the codes were cleared")),
    StandardParameter(
      0xA6, 4, scaled("odometer", .u32(0), unit: "km", over: 10, decimals: 1, lifetime: .retained, "Odometer reading")),
  ]

  static let throttle: [StandardParameter] = [
    StandardParameter(0x42, 2, scaled("module-voltage", .u16(0), unit: "V", over: 1000, decimals: 3, "Control module voltage")),
    StandardParameter(
      0x43, 2,
      scaled("absolute-load", .u16(0), unit: "%", times: 100, over: 255, decimals: 1, "Absolute load: air charge relative to full load")),
    StandardParameter(0x44, 2, lambda("commanded-lambda", "Commanded air-fuel equivalence ratio (lambda)")),
    StandardParameter(0x45, 1, percent("throttle-position-relative", "Relative throttle position")),
    StandardParameter(0x46, 1, celsius("ambient-temperature", "Ambient air temperature")),
    StandardParameter(0x47, 1, percent("throttle-position-b", "Absolute throttle position B")),
    StandardParameter(0x48, 1, percent("throttle-position-c", "Absolute throttle position C")),
    StandardParameter(0x49, 1, percent("pedal-position-d", "Accelerator pedal position D")),
    StandardParameter(0x4A, 1, percent("pedal-position-e", "Accelerator pedal position E")),
    StandardParameter(0x4B, 1, percent("pedal-position-f", "Accelerator pedal position F")),
    StandardParameter(0x4C, 1, percent("throttle-commanded", "Commanded throttle actuator position")),
    StandardParameter(0x5A, 1, percent("pedal-position-relative", "Relative accelerator pedal position")),
    StandardParameter(0x8D, 1, percent("throttle-position-g", "Absolute throttle position G")),
  ]

  static let engine: [StandardParameter] = [
    // The scaling of other PIDs: Scaling.swift.
    StandardParameter(0x4F, 4),
    StandardParameter(0x50, 4),
    StandardParameter(0x52, 1, percent("ethanol", "Ethanol content of the fuel")),
    StandardParameter(
      0x53, 2,
      scaled("evap-pressure-absolute", .u16(0), unit: "kPa", over: 200, decimals: 3, "Evaporative system vapour pressure (absolute)")),
    StandardParameter(
      0x54, 2,
      .whole(
        Property("evap-pressure-wide", .int, unit: "Pa", range: -32768...32767, help: "Evaporative system vapour pressure (gauge)"), .s16(0)
      )
    ),
    StandardParameter(0x59, 2, count("fuel-rail-pressure-absolute", .u16(0), unit: "kPa", times: 10, "Fuel rail pressure (absolute)")),
    StandardParameter(0x5B, 1, percent("hybrid-battery-remaining", "Remaining charge or life of the hybrid battery pack")),
    StandardParameter(0x5C, 1, celsius("oil-temperature", "Engine oil temperature")),
    StandardParameter(
      0x5D, 2,
      scaled("injection-timing", .u16(0), unit: "°", over: 128, plus: -210, decimals: 2, "Fuel injection timing before top dead centre")),
    StandardParameter(0x5E, 2, scaled("fuel-rate", .u16(0), unit: "L/h", over: 20, decimals: 2, "Engine fuel rate")),
    StandardParameter(0x61, 1, torque("torque-demanded", "Driver demanded engine torque, relative to the reference")),
    StandardParameter(0x62, 1, torque("torque", "Actual engine torque, relative to the reference")),
    StandardParameter(0x63, 2, count("torque-reference", .u16(0), unit: "Nm", lifetime: .retained, "Engine reference torque (100 %)")),
    StandardParameter(0x64, 5),
    StandardParameter(0x66, 5, supported(airFlow("a", 1), by: 0), supported(airFlow("b", 3), by: 1)),
    StandardParameter(
      0x67, 3, supported(celsius("coolant-temperature-1", "Engine coolant temperature, sensor 1", at: 1), by: 0),
      supported(celsius("coolant-temperature-2", "Engine coolant temperature, sensor 2", at: 2), by: 1)),
    StandardParameter(
      0x7F, 13, supported(count("engine-time", .u32(1), unit: "s", lifetime: .retained, "Total engine run time"), by: 0),
      supported(count("engine-idle-time", .u32(5), unit: "s", lifetime: .retained, "Total engine idle time"), by: 1)),
    StandardParameter(0x84, 1, celsius("manifold-temperature", "Manifold surface temperature")),
    StandardParameter(0x8E, 1, torque("torque-friction", "Engine friction torque, relative to the reference")),
    StandardParameter(0x9E, 2, scaled("exhaust-flow", .u16(0), unit: "kg/h", over: 5, decimals: 1, "Exhaust gas flow rate")),
    StandardParameter(0xA2, 2, scaled("cylinder-fuel-rate", .u16(0), unit: "mg/stroke", over: 32, decimals: 2, "Cylinder fuel rate")),
  ]

  private static func torque(_ name: String, _ help: String) -> DataRow {
    .whole(Property(name, .int, unit: "%", range: -125...130, help: help), .u8(0), plus: -125)
  }

  private static func airFlow(_ sensor: String, _ at: Int) -> DataRow {
    scaled("air-flow-\(sensor)", .u16(at), unit: "g/s", over: 32, decimals: 2, "Mass air flow, sensor \(sensor)")
  }

  /// A row that is present if a bit of the first byte is set.
  private static func supported(_ row: DataRow, by bit: UInt8) -> DataRow {
    DataRow(row.property) { data in
      guard let bits = data.first, bits >> bit & 1 == 1 else { return .absent(.notReported) }
      return row.read(data)
    }
  }
}
