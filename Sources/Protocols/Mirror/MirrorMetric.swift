// What the mirror can show of other devices: health and weather, each value with the tag, unit and rounding that the display
// expects. The house has °C and kilometres; the mirror wants °F and miles.
// Facts: ISM-App's HealthData.swift and WeatherData.swift.

/// A value of another device that the mirror shows. Its raw value is the name of the property that is observed.
enum MirrorMetric: String, CaseIterable, Sendable {
  case heartRate = "heart-rate"
  case activeEnergy = "active-energy"
  case steps
  case distance
  case temperature
  case humidity
  case condition
  case uvIndex = "uv-index"

  static let health: [MirrorMetric] = [.heartRate, .activeEnergy, .steps, .distance]
  static let weather: [MirrorMetric] = [.temperature, .humidity, .condition, .uvIndex]

  var isHealth: Bool { Self.health.contains(self) }

  private static let kilometresInAMile = 1.609344

  /// The message that tells this value, or why there is none.
  func message(_ value: Value) throws(ValueError) -> MirrorMessage {
    if self == .condition {
      guard case .string(let text) = value else { throw ValueError("that is not a text") }
      return try MirrorMessage(.condition, text)
    }
    guard let number = value.number else { throw ValueError("that is not a number") }
    switch self {
    case .heartRate: return try MirrorMessage(.heart, number)
    case .activeEnergy: return try MirrorMessage(.energy, number)
    case .steps: return try MirrorMessage(.steps, number)
    case .distance: return try MirrorMessage(.distance, number / Self.kilometresInAMile)
    case .temperature: return try MirrorMessage(.temperature, number * 9 / 5 + 32)
    case .humidity: return try MirrorMessage(.humidity, number)
    case .uvIndex, .condition: return try MirrorMessage(.uvIndex, number)
    }
  }

  /// How the app says that it is not known today; nil where it says nothing.
  var unknown: MirrorMessage? {
    switch self {
    case .activeEnergy: .noEnergy
    case .steps: .noSteps
    case .distance: .noDistance
    case .condition: .noCondition
    case .uvIndex: .noUVIndex
    case .heartRate, .temperature, .humidity: nil
    }
  }

  /// What is shown of that.
  var unknownValue: Value? {
    switch self {
    case .condition: .string("n/a")
    default: unknown.map { _ in .float(0) }
    }
  }

  /// What was sent last of it.
  var sent: MirrorSignal {
    switch self {
    case .heartRate: .sentHeartRate
    case .activeEnergy: .sentActiveEnergy
    case .steps: .sentSteps
    case .distance: .sentDistance
    case .temperature: .sentTemperature
    case .humidity: .sentHumidity
    case .condition: .sentCondition
    case .uvIndex: .sentUVIndex
    }
  }

  /// Whether it may be sent at all; weather needs no permission.
  var permission: MirrorSwitch? {
    switch self {
    case .heartRate: .sendHeartRate
    case .activeEnergy: .sendActiveEnergy
    case .steps: .sendSteps
    case .distance: .sendDistance
    case .temperature, .humidity, .condition, .uvIndex: nil
    }
  }
}
