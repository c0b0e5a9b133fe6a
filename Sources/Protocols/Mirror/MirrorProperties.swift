// The properties of a mirror: names, units, ranges, words. The order of the cases is the order of the schema. The mirror never
// answers: all of it is the daemon's own memory, and `sent-…` says no more than that the ESP32 acknowledged a write, and when.

/// A property of a mirror; its raw value is its position in the schema.
enum MirrorSignal: Int, CaseIterable, Sendable {
  case led, username, health, weather, send, interval
  case sendHeartRate, sendActiveEnergy, sendSteps, sendDistance
  case sentName, sentLED, sentHeartRate, sentActiveEnergy, sentSteps, sentDistance
  case sentTemperature, sentHumidity, sentCondition, sentUVIndex

  /// What the mirror acknowledged, and when.
  static let sent: [MirrorSignal] = [
    .sentName, .sentLED, .sentHeartRate, .sentActiveEnergy, .sentSteps, .sentDistance, .sentTemperature, .sentHumidity, .sentCondition,
    .sentUVIndex,
  ]

  static let intervals = 5.0...3600.0

  static var properties: [Property] {
    allCases.map { signal in
      let row = signal.declaration
      let isSet = !sent.contains(signal)
      return Property(
        row.name, row.type, unit: row.unit, range: row.range, access: isSet ? .write : .read, remembered: isSet, lifetime: .retained,
        help: row.help)
    }
  }

  private typealias Row = (name: String, type: ValueType, unit: String?, range: ClosedRange<Double>?, help: String)

  private var declaration: Row {
    switch self {
    case .led: ("led", .int, "%", 0...100, "Brightness of the mirror's light; kept, and told again on every connection")
    case .username:
      (
        "username", .string, nil, nil,
        "Whom the mirror greets (\"\": the configuration's); it takes pictures at the first value under a name that it does not know"
      )
    case .health: ("health", .bool, nil, nil, "Collect health values, those that are permitted one by one")
    case .weather: ("weather", .bool, nil, nil, "Collect the weather")
    case .send: ("send", .bool, nil, nil, "Send what is collected, 2 s after it is switched on and then every interval")
    case .interval: ("interval", .int, "s", Self.intervals, "Between two waves")
    case .sendHeartRate: ("send-heart-rate", .bool, nil, nil, "The mirror may be told the heart rate")
    case .sendActiveEnergy: ("send-active-energy", .bool, nil, nil, "The mirror may be told the active energy")
    case .sendSteps: ("send-steps", .bool, nil, nil, "The mirror may be told the steps")
    case .sendDistance: ("send-distance", .bool, nil, nil, "The mirror may be told the distance")
    case .sentName:
      ("sent-name", .string, nil, nil, "The name that the mirror acknowledged last; what its display makes of it is not known")
    case .sentLED: ("sent-led", .int, "%", 0...100, "The brightness that the mirror acknowledged last, which its display need not show")
    case .sentHeartRate: ("sent-heart-rate", .float, "bpm", nil, "The heart rate that the mirror acknowledged last")
    case .sentActiveEnergy: ("sent-active-energy", .float, "kcal", nil, "The active energy that the mirror acknowledged last")
    case .sentSteps: ("sent-steps", .float, nil, nil, "The steps that the mirror acknowledged last")
    case .sentDistance: ("sent-distance", .float, "km", nil, "The distance that the mirror acknowledged last, in miles on the air")
    case .sentTemperature:
      ("sent-temperature", .float, "°C", nil, "The temperature that the mirror acknowledged last, in whole °F on the air")
    case .sentHumidity: ("sent-humidity", .float, "%", nil, "The humidity that the mirror acknowledged last, in whole percent on the air")
    case .sentCondition: ("sent-condition", .string, nil, nil, "The weather that the mirror acknowledged last")
    case .sentUVIndex: ("sent-uv-index", .float, nil, nil, "The UV index that the mirror acknowledged last, rounded on the air")
    }
  }
}

/// Something that a person switches on and off, and that stays so.
enum MirrorSwitch: String, CaseIterable, Sendable {
  case health, weather, send
  case sendHeartRate = "send-heart-rate"
  case sendActiveEnergy = "send-active-energy"
  case sendSteps = "send-steps"
  case sendDistance = "send-distance"

  var signal: MirrorSignal {
    switch self {
    case .health: .health
    case .weather: .weather
    case .send: .send
    case .sendHeartRate: .sendHeartRate
    case .sendActiveEnergy: .sendActiveEnergy
    case .sendSteps: .sendSteps
    case .sendDistance: .sendDistance
    }
  }
}

extension Effects {
  mutating func publish(_ signal: MirrorSignal, _ value: Value) { publish(signal.rawValue, value) }
  mutating func withdraw(_ signal: MirrorSignal, _ reason: String) { withdraw(signal.rawValue, reason) }
}
