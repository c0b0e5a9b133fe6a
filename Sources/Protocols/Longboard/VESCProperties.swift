// The properties and actions of a longboard whose VESC is on the link: names, units, ranges, words. The order of the cases
// is the order of the schema; the targets of motion are declared only where motion is allowed.
// Signs are the VESC's: current and power positive when the battery gives, negative when it takes; speed, ERPM and duty
// negative backwards.

/// A property of a `longboard` that speaks as a VESC; its raw value is its position in the schema.
enum VESCSignal: Int, CaseIterable, Sendable {
  case speed, battery, connected, distance, totalDistance
  case batteryVoltage, batteryCurrent, batteryPower, motorCurrent, duty, erpm, rpm
  case mosfetTemperature, motorTemperature, mosfetTemperature1, mosfetTemperature2, mosfetTemperature3
  case chargeUsed, chargeRegenerated, energyUsed, energyRegenerated, energyLeft
  case faultCode, timedOut, killSwitch, vescs, controllerID, uptime
  case mode
  case pollRate, roundTrip, roundTripP99, lateness, latenessP99
  case firmware, hardware, polls, missed, timeouts, badFrames
  case targetCurrent, brakeCurrent, targetDuty, handbrakeCurrent

  /// Those that the VESC reports.
  static let reported = speed.rawValue...uptime.rawValue
  /// Those that are measured while polling.
  static let measured = pollRate.rawValue...latenessP99.rawValue
  static let targets = [targetCurrent, brakeCurrent, targetDuty, handbrakeCurrent]

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  /// The schema's rows.
  static func properties(_ options: VESCOptions, period: Nanoseconds) -> [Property] {
    let signals = allCases.filter { options.allowsMotion || !targets.contains($0) }
    return signals.map { $0.property(options, period) }
  }

  private func property(_ options: VESCOptions, _ period: Nanoseconds) -> Property {
    let row = declaration(options)
    var property = Property(row.name, row.type, unit: row.unit, range: row.range, lifetime: .fresh(lifetime(period)), help: row.help)
    switch self {
    case .firmware, .hardware, .polls, .missed, .timeouts, .badFrames, .totalDistance: property.lifetime = .retained
    case .mode:
      property.access = .write
      property.remembered = true
      property.choices = options.modes.map(\.name) + [VESCMode.full]
    case .targetCurrent, .brakeCurrent, .targetDuty, .handbrakeCurrent: property.access = .motion
    default: break
    }
    return property
  }

  /// Three periods and two seconds at least; what is asked for once a second, or in turns on a slow grid, twice as long.
  private func lifetime(_ period: Nanoseconds) -> Nanoseconds {
    switch self {
    case .speed, .battery, .batteryVoltage, .batteryCurrent, .batteryPower, .motorCurrent, .duty, .erpm, .rpm: max(3 * period, 2 * .second)
    default: max(6 * period, 4 * .second)
    }
  }

  private func declaration(_ options: VESCOptions) -> Row {
    let (current, duty) = (options.motionCurrent, options.motionDuty ?? 100)
    return switch self {
    case .speed: ("speed", .float, "km/h", -500...500, "Speed over ground; negative is backwards")
    case .battery: ("battery", .float, "%", 0...100, "Charge of the battery")
    case .connected: ("connected", .bool, nil, nil, "The VESC answers")
    case .distance: ("distance", .float, "km", nil, "Way since the VESC was switched on; falls on the way back")
    case .totalDistance: ("total-distance", .float, "km", 0...10_000_000, "Way in its life, both ways")
    case .batteryVoltage: ("battery-voltage", .float, "V", 0...3300, "Voltage of the battery")
    case .batteryCurrent: ("battery-current", .float, "A", -10_000...10_000, "Current of the battery, of all VESCs; negative is charging")
    case .batteryPower: ("battery-power", .float, "W", nil, "Power of the battery, of all VESCs; negative is charging")
    case .motorCurrent: ("motor-current", .float, "A", -10_000...10_000, "Current of the motors; negative is braking")
    case .duty: ("duty", .float, "%", -100...100, "Part of the battery voltage on the motor")
    case .erpm: ("erpm", .int, "rpm", nil, "Electrical speed of the motor")
    case .rpm: ("rpm", .int, "rpm", nil, "Speed of the motor")
    case .mosfetTemperature: ("mosfet-temperature", .float, "°C", -100...300, "The power stage, at its hottest")
    case .motorTemperature: ("motor-temperature", .float, "°C", -100...500, "The motor; without a sensor any number")
    case .mosfetTemperature1: temperature(1)
    case .mosfetTemperature2: temperature(2)
    case .mosfetTemperature3: temperature(3)
    case .chargeUsed: ("charge-used", .float, "Ah", nil, "Charge taken from the battery since the VESC was switched on")
    case .chargeRegenerated: ("charge-regenerated", .float, "Ah", nil, "Charge given back by braking")
    case .energyUsed: ("energy-used", .float, "Wh", nil, "Energy taken from the battery since the VESC was switched on")
    case .energyRegenerated: ("energy-regenerated", .float, "Wh", nil, "Energy given back by braking")
    case .energyLeft: ("energy-left", .float, "Wh", nil, "Energy left in the battery, by the VESC's own settings")
    case .faultCode: ("fault-code", .string, nil, nil, "What the VESC says is wrong with it; none, a name, or a number")
    case .timedOut: ("timed-out", .bool, nil, nil, "The VESC let the motor go because nobody told it anything")
    case .killSwitch: ("kill-switch", .bool, nil, nil, "The kill switch is on")
    case .vescs: ("vescs", .int, nil, 0...255, "VESCs on the board that are heard, this one included")
    case .controllerID: ("controller-id", .int, nil, 0...255, "Number of the VESC on its CAN bus")
    case .uptime: ("uptime", .int, "s", 0...5_000_000, "Time since the VESC was switched on")
    case .mode: ("mode", .string, nil, nil, "Speed mode: what the VESC is left of its own limits; full gives them all back")
    case .pollRate: ("poll-rate", .float, "Hz", nil, "Questions answered a second, over the last 10 s or 256 questions")
    case .roundTrip: ("round-trip", .float, "ms", nil, "Median time from question to answer, over the last 10 s or 256 questions")
    case .roundTripP99: ("round-trip-p99", .float, "ms", nil, "99th percentile of the time from question to answer")
    case .lateness: ("lateness", .float, "ms", nil, "Median delay of a question after its place on the grid")
    case .latenessP99: ("lateness-p99", .float, "ms", nil, "99th percentile of the delay of a question after its place on the grid")
    case .firmware: ("firmware", .string, nil, nil, "Version of the VESC's firmware")
    case .hardware: ("hardware", .string, nil, nil, "What board the VESC is")
    case .polls: ("polls", .int, nil, nil, "Questions sent since the daemon started")
    case .missed: ("missed", .int, nil, nil, "Places on the grid that passed without a question")
    case .timeouts: ("timeouts", .int, nil, nil, "Questions that were not answered")
    case .badFrames: ("bad-frames", .int, nil, nil, "Runs of bytes that were no frame, and answers that could not be used")
    case .targetCurrent:
      ("target-current", .float, "A", -current...current, "Motor current that the driver asks for; negative is backwards")
    case .brakeCurrent: ("brake-current", .float, "A", 0...current, "Motor current that brakes")
    case .targetDuty:
      ("target-duty", .float, "%", -duty...duty, "Part of the battery voltage that the driver asks for; needs motion-duty")
    case .handbrakeCurrent: ("handbrake-current", .float, "A", 0...current, "Motor current that holds the wheel still")
    }
  }

  private func temperature(_ number: Int) -> Row {
    ("mosfet-temperature-\(number)", .float, "°C", -100...300, "Power stage of phase \(number)")
  }
}

extension VESCMachine {
  /// Position 0 of the schema's actions.
  static let pingCAN = Action(
    "ping-can", streams: true, help: "List the VESCs on the CAN bus; takes seconds, and nothing else is asked meanwhile")
}
