// The properties of the `obd` kind: names, units, ranges, words. The order of the cases is the order of the schema.
// Battery and motor values carry the sign of the car: current and power positive when the battery gives, negative when
// it takes; motor speed negative when the motor turns backwards.

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

  /// Those that the battery page reports; the rest tells of the adapter and of ourselves.
  static let reported = rpm.rawValue...ignition.rawValue
  /// Those that are measured while polling.
  static let measured: [Signal] = [.pollRate, .roundTrip, .roundTripP99, .lateness, .latenessP99]
  /// What no property of a vehicle is called.
  static let ownNames = usual[(reported.upperBound + 1)...].map(\.name)

  /// The schema's rows. Values that are polled stay fresh for three periods, at least two seconds.
  static func properties(period: Nanoseconds) -> [Property] {
    let freshFor = max(3 * period, 2 * .second)
    return freshFor == 2 * .second ? usual : allCases.map { $0.property(freshFor) }
  }

  /// Shared by all devices that poll more often than three times in two seconds.
  private static let usual = allCases.map { $0.property(2 * .second) }

  private func property(_ freshFor: Nanoseconds) -> Property {
    let row = declaration
    // The voltage is measured every ten seconds, or thirty.
    let lifetime: Property.Lifetime =
      self == .adapterVoltage ? .fresh(90 * .second) : rawValue >= Signal.adapter.rawValue ? .retained : .fresh(freshFor)
    return Property(row.name, row.type, unit: row.unit, range: row.range, lifetime: lifetime, help: row.help)
  }

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .rpm: ("rpm", .int, "rpm", -20000...20000, "Speed of the first drive motor; negative is backwards")
    case .rpm2: ("rpm-2", .int, "rpm", -20000...20000, "Speed of the second drive motor; negative is backwards")
    case .stateOfCharge: ("state-of-charge", .float, "%", 0...100, "Charge of the drive battery as its controller counts it")
    case .maxChargePower: ("max-charge-power", .float, "kW", 0...660, "Power the battery takes now; some cars report 0 while driving")
    case .maxDischargePower: ("max-discharge-power", .float, "kW", 0...660, "Power the battery gives now")
    case .batteryCurrent: ("battery-current", .float, "A", -3300...3300, "Current of the drive battery; negative is charging")
    case .batteryVoltage: ("battery-voltage", .float, "V", 0...1000, "Voltage of the drive battery")
    case .batteryPower: ("battery-power", .float, "kW", -3300...3300, "Power of the drive battery; negative is charging")
    case .regenerating: ("regenerating", .bool, nil, nil, "The turning motor charges the battery")
    case .batteryTemperatureMax: ("battery-temperature-max", .int, "°C", -50...100, "Warmest place of the drive battery")
    case .batteryTemperatureMin: ("battery-temperature-min", .int, "°C", -50...100, "Coldest place of the drive battery")
    case .moduleTemperature1: module(1)
    case .moduleTemperature2: module(2)
    case .moduleTemperature3: module(3)
    case .moduleTemperature4: module(4)
    case .moduleTemperature5: module(5)
    case .inletTemperature: ("inlet-temperature", .int, "°C", -50...100, "Coolant or air at the battery's inlet")
    case .cellVoltageMax: ("cell-voltage-max", .float, "V", 0...5, "Voltage of the fullest cell")
    case .cellVoltageMaxCell: ("cell-voltage-max-cell", .int, nil, 1...255, "Number of the fullest cell")
    case .cellVoltageMin: ("cell-voltage-min", .float, "V", 0...5, "Voltage of the emptiest cell")
    case .cellVoltageMinCell: ("cell-voltage-min-cell", .int, nil, 1...255, "Number of the emptiest cell")
    case .fanStatus: ("fan-status", .int, nil, 0...255, "Step that the battery fan is told to run at")
    case .fanSpeed: ("fan-speed", .int, "Hz", 0...255, "Speed that the battery fan reports")
    case .auxBatteryVoltage: ("aux-battery-voltage", .float, "V", 0...26, "Voltage of the 12 V battery")
    case .chargeIn: ("charge-in", .float, "Ah", nil, "Charge the battery has taken in its life")
    case .chargeOut: ("charge-out", .float, "Ah", nil, "Charge the battery has given in its life")
    case .energyIn: ("energy-in", .float, "kWh", nil, "Energy the battery has taken in its life")
    case .energyOut: ("energy-out", .float, "kWh", nil, "Energy the battery has given in its life")
    case .operatingTime: ("operating-time", .int, "s", nil, "Time the battery has been in use in its life")
    case .inverterVoltage: ("inverter-voltage", .int, "V", 0...1000, "Voltage of the inverter's capacitor")
    case .isolationResistance: ("isolation-resistance", .int, "kΩ", nil, "Resistance between drive battery and body")
    case .charging: ("charging", .bool, nil, nil, "The battery is being charged from outside")
    case .acPlug: ("ac-plug", .bool, nil, nil, "An AC plug is in")
    case .dcPlug: ("dc-plug", .bool, nil, nil, "A DC plug is in")
    case .mainRelay: ("main-relay", .bool, nil, nil, "The battery's main relay is closed")
    case .ignition: ("ignition", .bool, nil, nil, "The ignition is on")
    case .pollRate: ("poll-rate", .float, "Hz", nil, "Polls answered a second, over the last 10 s or 256 polls")
    case .roundTrip: ("round-trip", .float, "ms", nil, "Median time from request to answer, over the last 10 s or 256 polls")
    case .roundTripP99: ("round-trip-p99", .float, "ms", nil, "99th percentile of the time from request to answer")
    case .lateness: ("lateness", .float, "ms", nil, "Median delay of a poll after its place on the grid")
    case .latenessP99: ("lateness-p99", .float, "ms", nil, "99th percentile of the delay of a poll after its place on the grid")
    case .adapter: ("adapter", .string, nil, nil, "What the adapter says it is")
    case .adapterVoltage: ("adapter-voltage", .float, "V", 0...60, "Voltage at the plug as the adapter measures it")
    case .vehicle: ("vehicle", .string, nil, nil, "What the vehicle was found to be")
    case .protocol: ("protocol", .string, nil, nil, "The vehicle's bus")
    case .request: ("request", .string, nil, nil, "The request that the vehicle answers")
    case .polls: ("polls", .int, nil, nil, "Polls sent since the daemon started")
    case .missed: ("missed", .int, nil, nil, "Places on the grid that passed without a poll")
    case .timeouts: ("timeouts", .int, nil, nil, "Commands that the adapter did not answer")
    case .badReplies: ("bad-replies", .int, nil, nil, "Replies that could not be used")
    case .lastBadReply: ("last-bad-reply", .string, nil, nil, "The last reply that could not be used: | is a line end")
    }
  }

  private func module(_ number: Int) -> Row {
    ("module-temperature-\(number)", .int, "°C", -50...100, "Battery module \(number)")
  }
}

extension OBDMachine {
  /// Names that a signal of an owner's own cannot have.
  static let ownProperties = Set(Signal.properties(period: 0).map(\.name))
  /// What the battery page tells.
  static let batteryProperties = Set(Signal.properties(period: 0)[Signal.reported].map(\.name))
}
