// The properties and actions of a longboard with a VESC on the link. The order of the cases is the order of the schema; the motion
// targets are declared only if motion is allowed.
// Signs are the VESC's: current and power are positive when the battery discharges; speed, ERPM and duty are negative when riding
// backwards.

/// A property of a `longboard` with a VESC; its raw value is its position in the schema.
enum VESCProperty: Int, CaseIterable, Sendable {
  case speed, battery, connected, distance, totalDistance
  case batteryVoltage, batteryCurrent, batteryPower, motorCurrent, duty, erpm, rpm
  case mosfetTemperature, motorTemperature, mosfetTemperature1, mosfetTemperature2, mosfetTemperature3
  case chargeUsed, chargeRegenerated, energyUsed, energyRegenerated, energyLeft
  case faultCode, timedOut, killSwitch, vescs, controllerID, uptime
  case mode
  case pollRate, roundTrip, roundTripP99, lateness, latenessP99
  case firmware, hardware, polls, missed, timeouts, badFrames
  case targetCurrent, brakeCurrent, targetDuty, handbrakeCurrent

  /// The values that are unknown while the VESC does not respond.
  static let reported = allCases[...uptime.rawValue].filter { $0 != .connected && $0 != .totalDistance }
  /// The statistics of polling.
  static let measured = Array(allCases[pollRate.rawValue...latenessP99.rawValue])
  static let targets = [targetCurrent, brakeCurrent, targetDuty, handbrakeCurrent]

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  /// The rows of the schema.
  static func properties(_ options: VESCOptions, period: Nanoseconds) -> [Property] {
    let declared = allCases.filter { options.allowsMotion || !targets.contains($0) }
    return declared.map { $0.property(options, period) }
  }

  private func property(_ options: VESCOptions, _ period: Nanoseconds) -> Property {
    let row = declaration(options)
    var property = Property(
      row.name, row.type, unit: row.unit, range: row.range, lifetime: .fresh(lifetime(period)), group: group, rank: rank, help: row.help)
    switch self {
    case .firmware, .hardware, .polls, .missed, .timeouts, .badFrames, .totalDistance: property.lifetime = .retained
    case .mode:
      property.access = .write
      property.persisted = true
      property.choices = options.modes.map(\.name) + [VESCMode.full]
    case .targetCurrent, .brakeCurrent, .targetDuty, .handbrakeCurrent: property.access = .motion
    default: break
    }
    return property
  }

  private var group: PropertyGroup {
    switch self {
    case .speed, .distance, .totalDistance, .motorCurrent, .duty, .erpm, .rpm, .mode, .targetCurrent, .brakeCurrent, .targetDuty,
      .handbrakeCurrent:
      .drive
    case .battery, .batteryVoltage, .batteryCurrent, .batteryPower, .chargeUsed, .chargeRegenerated, .energyUsed, .energyRegenerated,
      .energyLeft:
      .battery
    case .mosfetTemperature, .motorTemperature, .mosfetTemperature1, .mosfetTemperature2, .mosfetTemperature3: .temperatures
    case .connected, .faultCode, .timedOut, .killSwitch: .diagnostics
    case .vescs, .controllerID, .uptime, .firmware, .hardware: .identity
    case .pollRate, .roundTrip, .roundTripP99, .lateness, .latenessP99, .polls, .missed, .timeouts, .badFrames: .statistics
    }
  }

  private var rank: PropertyRank {
    switch self {
    case .speed, .battery, .batteryPower: .headline
    case .duty, .erpm, .rpm, .mosfetTemperature1, .mosfetTemperature2, .mosfetTemperature3, .chargeUsed, .chargeRegenerated, .energyUsed,
      .energyRegenerated, .timedOut, .killSwitch, .controllerID, .uptime, .hardware, .pollRate:
      .detail
    case .roundTrip, .roundTripP99, .lateness, .latenessP99, .polls, .missed, .timeouts, .badFrames: .statistic
    default: .main
    }
  }

  /// The lifetime of a value: three poll periods, but at least two seconds; twice as long for values that are not polled in every slot.
  private func lifetime(_ period: Nanoseconds) -> Nanoseconds {
    switch self {
    case .speed, .battery, .batteryVoltage, .batteryCurrent, .batteryPower, .motorCurrent, .duty, .erpm, .rpm: max(3 * period, 2 * .second)
    default: max(6 * period, 4 * .second)
    }
  }

  private func declaration(_ options: VESCOptions) -> Row {
    let (current, duty) = (options.maxMotorCurrent, options.maxDutyCycle ?? 100)
    return switch self {
    case .speed: ("speed", .float, "km/h", -500...500, "Speed; negative is backwards")
    case .battery: ("battery", .float, "%", 0...100, "State of charge")
    case .connected: ("connected", .bool, nil, nil, "The VESC responds")
    case .distance: ("distance", .float, "km", nil, "Distance since the VESC was switched on; decreases when riding backwards")
    case .totalDistance: ("total-distance", .float, "km", 0...10_000_000, "Total distance, in both directions")
    case .batteryVoltage: ("battery-voltage", .float, "V", 0...3300, "Battery voltage")
    case .batteryCurrent: ("battery-current", .float, "A", -10_000...10_000, "Battery current of all VESCs; negative is charging")
    case .batteryPower: ("battery-power", .float, "W", nil, "Battery power of all VESCs; negative is charging")
    case .motorCurrent: ("motor-current", .float, "A", -10_000...10_000, "Motor current; negative is braking")
    case .duty: ("duty", .float, "%", -100...100, "Duty cycle")
    case .erpm: ("erpm", .int, "rpm", nil, "Electrical motor speed (ERPM)")
    case .rpm: ("rpm", .int, "rpm", nil, "Motor speed")
    case .mosfetTemperature: ("mosfet-temperature", .float, "°C", -100...300, "Highest MOSFET temperature")
    case .motorTemperature: ("motor-temperature", .float, "°C", -100...500, "Motor temperature; meaningless without a sensor")
    case .mosfetTemperature1: temperature(1)
    case .mosfetTemperature2: temperature(2)
    case .mosfetTemperature3: temperature(3)
    case .chargeUsed: ("charge-used", .float, "Ah", nil, "Charge drawn from the battery since the VESC was switched on")
    case .chargeRegenerated: ("charge-regenerated", .float, "Ah", nil, "Charge recovered by braking since the VESC was switched on")
    case .energyUsed: ("energy-used", .float, "Wh", nil, "Energy drawn from the battery since the VESC was switched on")
    case .energyRegenerated: ("energy-regenerated", .float, "Wh", nil, "Energy recovered by braking since the VESC was switched on")
    case .energyLeft: ("energy-left", .float, "Wh", nil, "Remaining battery energy, according to the VESC's own settings")
    case .faultCode: ("fault-code", .string, nil, nil, "Fault code of the VESC: none, a name, or a number")
    case .timedOut: ("timed-out", .bool, nil, nil, "The VESC released the motor after its command timeout")
    case .killSwitch: ("kill-switch", .bool, nil, nil, "The kill switch is active")
    case .vescs: ("vescs", .int, nil, 0...255, "Number of responding VESCs on the board, including this one")
    case .controllerID: ("controller-id", .int, nil, 0...255, "CAN ID of the VESC")
    case .uptime: ("uptime", .int, "s", 0...5_000_000, "Time since the VESC was switched on")
    case .mode: ("mode", .string, nil, nil, "Speed mode, which lowers the VESC's limits; full restores them")
    case .pollRate: ("poll-rate", .float, "Hz", nil, "Polls per second, over the last 10 s or 256 polls")
    case .roundTrip: ("round-trip", .float, "ms", nil, "Median round-trip time, over the last 10 s or 256 polls")
    case .roundTripP99: ("round-trip-p99", .float, "ms", nil, "99th percentile of the round-trip time")
    case .lateness: ("lateness", .float, "ms", nil, "Median lateness of a poll")
    case .latenessP99: ("lateness-p99", .float, "ms", nil, "99th percentile of the lateness of a poll")
    case .firmware: ("firmware", .string, nil, nil, "Firmware version of the VESC")
    case .hardware: ("hardware", .string, nil, nil, "Hardware name of the VESC")
    case .polls: ("polls", .int, nil, nil, "Polls sent since the daemon started")
    case .missed: ("missed", .int, nil, nil, "Missed poll slots")
    case .timeouts: ("timeouts", .int, nil, nil, "Polls without a response")
    case .badFrames: ("bad-frames", .int, nil, nil, "Sequences of bytes without a valid frame, and invalid responses")
    case .targetCurrent:
      ("target-current", .float, "A", -current...current, "Motor current setpoint; negative is backwards")
    case .brakeCurrent: ("brake-current", .float, "A", 0...current, "Braking current setpoint")
    case .targetDuty:
      ("target-duty", .float, "%", -duty...duty, "Duty cycle setpoint; requires max-duty-cycle")
    case .handbrakeCurrent: ("handbrake-current", .float, "A", 0...current, "Handbrake current setpoint")
    }
  }

  private func temperature(_ number: Int) -> Row {
    ("mosfet-temperature-\(number)", .float, "°C", -100...300, "MOSFET temperature of phase \(number)")
  }
}

extension VESCMachine {
  /// The action at position 0 in the schema.
  static let pingCAN = Action(
    "ping-can", streams: true, help: "List the VESCs on the CAN bus; takes seconds and suspends polling")
}
