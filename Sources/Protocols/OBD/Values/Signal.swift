// The properties of the `obd` kind: names, units, ranges, help. The order of the cases is the order of the schema. Signs: current and power
// positive when discharging; motor speed negative in reverse.

/// A property of an `obd` device; its raw value is its position in the schema.
enum Signal: Int, CaseIterable, Sendable {
  case rpm, rpm2, stateOfCharge, maxChargePower, maxDischargePower
  case batteryCurrent, batteryVoltage, batteryPower, regenerating
  case batteryTemperatureMax, batteryTemperatureMin
  case moduleTemperature1, moduleTemperature2, moduleTemperature3, moduleTemperature4, moduleTemperature5, inletTemperature
  case cellVoltageMax, cellVoltageMaxCell, cellVoltageMin, cellVoltageMinCell
  case fanStatus, fanSpeed, auxBatteryVoltage
  case chargeIn, chargeOut, energyIn, energyOut, operatingTime
  case inverterVoltage, isolationResistance
  case charging, acPlug, dcPlug, mainRelay, ignition
  case pollRate, roundTrip, roundTripP99, lateness, latenessP99, adapterVoltage
  case adapter, vehicle, `protocol`, request, polls, missed, timeouts, badReplies, lastBadReply

  /// Properties of the BMS data record; the rest describe the adapter and the polling.
  static let reported = rpm.rawValue...ignition.rawValue
  /// Properties measured while polling.
  static let measured: [Signal] = [.pollRate, .roundTrip, .roundTripP99, .lateness, .latenessP99]
  /// Names that no property of a vehicle may have.
  static let ownNames = usual[(reported.upperBound + 1)...].map(\.name)

  /// The rows of the schema. Polled values stay fresh for three periods, at least two seconds.
  static func properties(period: Nanoseconds) -> [Property] {
    let freshFor = max(3 * period, 2 * .second)
    return freshFor == 2 * .second ? usual : zip(allCases, usual).map { $0.property($1, freshFor) }
  }

  /// Shared by all devices that poll more than 1.5 times per second.
  private static let usual = allCases.map { signal in
    let row = signal.declaration
    return signal.property(Property(row.name, row.type, unit: row.unit, range: row.range, help: row.help), 2 * .second)
  }

  private func property(_ property: Property, _ freshFor: Nanoseconds) -> Property {
    var property = property
    // The voltage is measured every ten or thirty seconds.
    property.lifetime =
      self == .adapterVoltage ? .fresh(90 * .second) : rawValue >= Signal.adapter.rawValue ? .retained : .fresh(freshFor)
    return property
  }

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .rpm: ("rpm", .int, "rpm", -20000...20000, "Speed of the first drive motor; negative: reverse")
    case .rpm2: ("rpm-2", .int, "rpm", -20000...20000, "Speed of the second drive motor; negative: reverse")
    case .stateOfCharge: ("state-of-charge", .float, "%", 0...100, "State of charge of the traction battery as reported by the BMS")
    case .maxChargePower:
      ("max-charge-power", .float, "kW", 0...660, "Maximum charging power accepted now; some cars report 0 while driving")
    case .maxDischargePower: ("max-discharge-power", .float, "kW", 0...660, "Maximum discharging power available now")
    case .batteryCurrent: ("battery-current", .float, "A", -3300...3300, "Current of the traction battery; negative: charging")
    case .batteryVoltage: ("battery-voltage", .float, "V", 0...1000, "Voltage of the traction battery")
    case .batteryPower: ("battery-power", .float, "kW", -3300...3300, "Power of the traction battery; negative: charging")
    case .regenerating: ("regenerating", .bool, nil, nil, "The drive motor is charging the battery (regenerative braking)")
    case .batteryTemperatureMax: ("battery-temperature-max", .int, "°C", -50...100, "Highest temperature of the traction battery")
    case .batteryTemperatureMin: ("battery-temperature-min", .int, "°C", -50...100, "Lowest temperature of the traction battery")
    case .moduleTemperature1: module(1)
    case .moduleTemperature2: module(2)
    case .moduleTemperature3: module(3)
    case .moduleTemperature4: module(4)
    case .moduleTemperature5: module(5)
    case .inletTemperature: ("inlet-temperature", .int, "°C", -50...100, "Coolant or air temperature at the battery inlet")
    case .cellVoltageMax: ("cell-voltage-max", .float, "V", 0...5, "Voltage of the highest-voltage cell")
    case .cellVoltageMaxCell: ("cell-voltage-max-cell", .int, nil, 1...255, "Number of the highest-voltage cell")
    case .cellVoltageMin: ("cell-voltage-min", .float, "V", 0...5, "Voltage of the lowest-voltage cell")
    case .cellVoltageMinCell: ("cell-voltage-min-cell", .int, nil, 1...255, "Number of the lowest-voltage cell")
    case .fanStatus: ("fan-status", .int, nil, 0...255, "Commanded stage of the battery fan")
    case .fanSpeed: ("fan-speed", .int, "Hz", 0...255, "Reported speed of the battery fan")
    case .auxBatteryVoltage: ("aux-battery-voltage", .float, "V", 0...26, "Voltage of the 12 V battery")
    case .chargeIn: ("charge-in", .float, "Ah", nil, "Lifetime charge into the traction battery")
    case .chargeOut: ("charge-out", .float, "Ah", nil, "Lifetime charge out of the traction battery")
    case .energyIn: ("energy-in", .float, "kWh", nil, "Lifetime energy into the traction battery")
    case .energyOut: ("energy-out", .float, "kWh", nil, "Lifetime energy out of the traction battery")
    case .operatingTime: ("operating-time", .int, "s", nil, "Lifetime operating time of the traction battery")
    case .inverterVoltage: ("inverter-voltage", .int, "V", 0...1000, "Voltage of the inverter capacitor")
    case .isolationResistance: ("isolation-resistance", .int, "kΩ", nil, "Isolation resistance between traction battery and body")
    case .charging: ("charging", .bool, nil, nil, "The traction battery is being charged from a charger")
    case .acPlug: ("ac-plug", .bool, nil, nil, "An AC charging plug is connected")
    case .dcPlug: ("dc-plug", .bool, nil, nil, "A DC charging plug is connected")
    case .mainRelay: ("main-relay", .bool, nil, nil, "The main relay of the traction battery is closed")
    case .ignition: ("ignition", .bool, nil, nil, "The ignition is on")
    case .pollRate: ("poll-rate", .float, "Hz", nil, "Answered polls per second, over the last 10 s or 256 polls")
    case .roundTrip: ("round-trip", .float, "ms", nil, "Median time from request to response, over the last 10 s or 256 polls")
    case .roundTripP99: ("round-trip-p99", .float, "ms", nil, "99th percentile of the time from request to response")
    case .lateness: ("lateness", .float, "ms", nil, "Median delay of a poll after its slot")
    case .latenessP99: ("lateness-p99", .float, "ms", nil, "99th percentile of the delay of a poll after its slot")
    case .adapter: ("adapter", .string, nil, nil, "Identification of the adapter")
    case .adapterVoltage: ("adapter-voltage", .float, "V", 0...60, "Voltage at the OBD connector as measured by the adapter")
    case .vehicle: ("vehicle", .string, nil, nil, "Detected vehicle")
    case .protocol: ("protocol", .string, nil, nil, "OBD protocol")
    case .request: ("request", .string, nil, nil, "Request polled at the device's rate")
    case .polls: ("polls", .int, nil, nil, "Polls sent since the daemon started")
    case .missed: ("missed", .int, nil, nil, "Missed poll slots")
    case .timeouts: ("timeouts", .int, nil, nil, "Commands that the adapter did not reply to in time")
    case .badReplies: ("bad-replies", .int, nil, nil, "Unusable replies")
    case .lastBadReply: ("last-bad-reply", .string, nil, nil, "Last unusable reply; | is a line end")
    }
  }

  private func module(_ number: Int) -> Row {
    ("module-temperature-\(number)", .int, "°C", -50...100, "Temperature of battery module \(number)")
  }
}

extension OBDMachine {
  /// Names that a custom signal cannot have.
  static let ownProperties = Set(Signal.properties(period: 0).map(\.name))
  /// Names of the BMS data record.
  static let batteryProperties = Set(Signal.properties(period: 0)[Signal.reported].map(\.name))
}
