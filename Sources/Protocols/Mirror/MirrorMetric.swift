// The values of other devices that the mirror can show: health and weather, each with its tag, unit and rounding. The other devices use °C
// and km; the mirror uses °F and miles.
// Source: ISM-App's HealthData.swift and WeatherData.swift.

/// A value of another device that the mirror shows. Its raw value is the name of the observed property.
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

  private static let kilometresPerMile = 1.609344

  /// The message with this value; throws if the mirror cannot handle it.
  func message(_ value: Value) throws(ValueError) -> MirrorMessage {
    if self == .condition {
      guard case .string(let text) = value else { throw ValueError("not a string") }
      return try MirrorMessage(.condition, text)
    }
    guard let number = value.number else { throw ValueError("not a number") }
    switch self {
    case .heartRate: return try MirrorMessage(.heart, number)
    case .activeEnergy: return try MirrorMessage(.energy, number)
    case .steps: return try MirrorMessage(.steps, number)
    case .distance: return try MirrorMessage(.distance, number / Self.kilometresPerMile)
    case .temperature: return try MirrorMessage(.temperature, number * 9 / 5 + 32)
    case .humidity: return try MirrorMessage(.humidity, number)
    case .uvIndex, .condition: return try MirrorMessage(.uvIndex, number)
    }
  }

  /// The message that withdraws the value, as the app sends it; nil if the app never withdraws it.
  var withdrawalMessage: MirrorMessage? {
    switch self {
    case .activeEnergy: .noEnergy
    case .steps: .noSteps
    case .distance: .noDistance
    case .condition: .noCondition
    case .uvIndex: .noUVIndex
    case .heartRate, .temperature, .humidity: nil
    }
  }

  /// The value to publish after the metric was withdrawn from the mirror; nil if it is never withdrawn.
  var withdrawnValue: Value? {
    switch self {
    case .condition: .string("n/a")
    default: withdrawalMessage.map { _ in .float(0) }
    }
  }

  /// The property with the last acknowledged value.
  var sentProperty: MirrorProperty {
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

  /// The setting that permits sending the value; nil for weather, which needs no permission.
  var permission: MirrorProperty? {
    switch self {
    case .heartRate: .sendHeartRate
    case .activeEnergy: .sendActiveEnergy
    case .steps: .sendSteps
    case .distance: .sendDistance
    case .temperature, .humidity, .condition, .uvIndex: nil
    }
  }
}
