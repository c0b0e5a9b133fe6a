// The properties of a mirror: names, units, ranges, help texts. The order of the cases is the order of the schema. The mirror sends
// nothing: the properties are the daemon's settings, except `sent-…`, which are the values that the ESP32 has acknowledged.

/// A property of a mirror; its raw value is its position in the schema.
enum MirrorProperty: Int, CaseIterable, Sendable {
  case led, username, health, weather, send, interval
  case sendHeartRate, sendActiveEnergy, sendSteps, sendDistance
  case sentName, sentLED, sentHeartRate, sentActiveEnergy, sentSteps, sentDistance
  case sentTemperature, sentHumidity, sentCondition, sentUVIndex

  /// The properties with the values that the mirror acknowledged last.
  static let sent: [MirrorProperty] = [
    .sentName, .sentLED, .sentHeartRate, .sentActiveEnergy, .sentSteps, .sentDistance, .sentTemperature, .sentHumidity, .sentCondition,
    .sentUVIndex,
  ]

  /// The settings that are on or off.
  static let switches: [MirrorProperty] = [.health, .weather, .send, .sendHeartRate, .sendActiveEnergy, .sendSteps, .sendDistance]

  static let intervals = 5.0...3600.0

  var name: String { declaration.name }

  static var properties: [Property] {
    allCases.map { property in
      let row = property.declaration
      let isSetting = !sent.contains(property)
      return Property(
        row.name, row.type, unit: row.unit, range: row.range, access: isSetting ? .write : .read, persisted: isSetting, lifetime: .retained,
        group: isSetting ? .settings : .display, rank: property.rank, help: row.help)
    }
  }

  private var rank: PropertyRank {
    switch self {
    case .led, .username: .headline
    case .sendHeartRate, .sendActiveEnergy, .sendSteps, .sendDistance, .sentName, .sentLED: .detail
    default: .main
    }
  }

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .led: ("led", .int, "%", 0...100, "Brightness of the mirror's light; stored, and sent on every connection")
    case .username:
      (
        "username", .string, nil, nil,
        "Name with which the mirror greets you (\"\": the configured name); the first value under a new name makes it take pictures"
      )
    case .health: ("health", .bool, nil, nil, "Collect health values; to send one, also switch on its send- property")
    case .weather: ("weather", .bool, nil, nil, "Collect weather values")
    case .send: ("send", .bool, nil, nil, "Send collected values: 2 s after it is switched on, then every interval")
    case .interval: ("interval", .int, "s", Self.intervals, "Interval between update cycles")
    case .sendHeartRate: ("send-heart-rate", .bool, nil, nil, "Permit sending the heart rate")
    case .sendActiveEnergy: ("send-active-energy", .bool, nil, nil, "Permit sending the active energy")
    case .sendSteps: ("send-steps", .bool, nil, nil, "Permit sending the steps")
    case .sendDistance: ("send-distance", .bool, nil, nil, "Permit sending the distance")
    case .sentName:
      ("sent-name", .string, nil, nil, "Last acknowledged name; the display may not show it")
    case .sentLED: ("sent-led", .int, "%", 0...100, "Last acknowledged brightness; the light may not show it")
    case .sentHeartRate: ("sent-heart-rate", .float, "bpm", nil, "Last acknowledged heart rate")
    case .sentActiveEnergy: ("sent-active-energy", .float, "kcal", nil, "Last acknowledged active energy")
    case .sentSteps: ("sent-steps", .float, nil, nil, "Last acknowledged steps")
    case .sentDistance: ("sent-distance", .float, "km", nil, "Last acknowledged distance; sent in miles")
    case .sentTemperature:
      ("sent-temperature", .float, "°C", nil, "Last acknowledged temperature; sent in whole °F")
    case .sentHumidity: ("sent-humidity", .float, "%", nil, "Last acknowledged humidity; sent in whole percent")
    case .sentCondition: ("sent-condition", .string, nil, nil, "Last acknowledged weather condition")
    case .sentUVIndex: ("sent-uv-index", .float, nil, nil, "Last acknowledged UV index; sent as a whole number")
    }
  }
}

extension PersistedSettings {
  subscript(_ property: MirrorProperty) -> Value? { self[property.rawValue] }
  func latest(_ property: MirrorProperty) -> Value? { latest(property.rawValue) }
}

extension Effects {
  mutating func publish(_ property: MirrorProperty, _ value: Value) { publish(property.rawValue, value) }
  mutating func withdraw(_ property: MirrorProperty, _ reason: String) { withdraw(property.rawValue, reason) }
}
