// The properties of the device itself, which describe the adapter and the polling: names, units, ranges, help. In the schema they follow
// the vehicle's properties, in the order of the cases.

/// A property of every `obd` device; its raw value is its position after the vehicle's properties.
enum DeviceProperty: Int, CaseIterable, Sendable {
  case pollRate, roundTrip, roundTripP99, lateness, latenessP99, adapterVoltage
  case adapter, vehicle, `protocol`, request, polls, missed, timeouts, badReplies, lastBadReply

  /// Properties measured while polling.
  static let measured: [DeviceProperty] = [.pollRate, .roundTrip, .roundTripP99, .lateness, .latenessP99]
  /// Names that no property of a vehicle may have.
  static let names = shared.map(\.name)

  /// The properties in the schema. Polled values stay fresh for three periods, but at least for two seconds.
  static func properties(period: Nanoseconds) -> [Property] {
    let freshFor = freshFor(period)
    return freshFor == 2 * .second ? shared : zip(allCases, shared).map { $0.withLifetime($1, freshFor) }
  }

  /// The lifetime of values that are polled with this period.
  static func freshFor(_ period: Nanoseconds) -> Nanoseconds { max(3 * period, 2 * .second) }

  /// The properties that are shared by all devices that poll at least 1.5 times per second.
  private static let shared = allCases.map { property in
    let row = property.declaration
    let (group, rank) = (property.group, property.rank)
    return property.withLifetime(
      Property(row.name, row.type, unit: row.unit, range: row.range, group: group, rank: rank, help: row.help), 2 * .second)
  }

  /// The property with its lifetime; polled values stay fresh for `freshFor`.
  private func withLifetime(_ property: Property, _ freshFor: Nanoseconds) -> Property {
    var property = property
    // The voltage is measured every ten or thirty seconds.
    property.lifetime =
      self == .adapterVoltage ? .fresh(90 * .second) : rawValue >= DeviceProperty.adapter.rawValue ? .retained : .fresh(freshFor)
    return property
  }

  private var group: PropertyGroup {
    switch self {
    case .adapter, .adapterVoltage, .protocol: .adapter
    case .vehicle: .identity
    case .pollRate, .roundTrip, .roundTripP99, .lateness, .latenessP99, .request, .polls, .missed, .timeouts, .badReplies, .lastBadReply:
      .statistics
    }
  }

  private var rank: PropertyRank {
    switch self {
    case .adapter, .adapterVoltage, .vehicle: .main
    case .protocol, .pollRate: .detail
    default: .statistic
    }
  }

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
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
    case .lastBadReply: ("last-bad-reply", .string, nil, nil, "Last unusable reply; | marks a line end")
    }
  }
}

extension OBDMachine {
  /// Names that a custom signal cannot have.
  static var ownProperties: Set<String> { OBDNames.own }
  /// The names of the properties in the BMS data record.
  static var batteryProperties: Set<String> { OBDNames.battery }
}

/// The names of the properties that every obd device can have.
private enum OBDNames {
  static let battery = Set(BMSRecord.entries.map(\.dataRow.property.name))
  static let own = battery.union(DeviceProperty.names)
}
