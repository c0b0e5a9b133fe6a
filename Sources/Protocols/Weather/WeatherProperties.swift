// The properties of a weather device, and the names of the WMO weather codes. All units are metric; clients convert them.
// Source: WMO code table 4677 as Open-Meteo uses it (open-meteo.com).

/// The properties, in the order of the schema.
enum WeatherProperty: Int, CaseIterable {
  case temperature, humidity, condition, uvIndex, place, lastUpdate

  /// The properties that a response contains; their values expire.
  static let inResponse: [WeatherProperty] = [.temperature, .humidity, .condition, .uvIndex]

  /// The plausible range.
  var range: ClosedRange<Double>? {
    switch self {
    case .temperature: -100...70
    case .humidity: 0...100
    case .uvIndex: 0...30
    case .condition, .place, .lastUpdate: nil
    }
  }

  /// The schema's properties; a value from a response is valid for `freshFor` nanoseconds.
  static func table(freshFor: Nanoseconds) -> [Property] {
    allCases.map { item in
      var property = item.declaration(freshFor: freshFor)
      property.group = .weather
      property.rank = item == .temperature || item == .condition ? .headline : .main
      return property
    }
  }

  private func declaration(freshFor: Nanoseconds) -> Property {
    switch self {
    case .temperature:
      Property(
        "temperature", .float, unit: "°C", range: range, lifetime: .fresh(freshFor), help: "Air temperature, 2 m above the ground")
    case .humidity:
      Property(
        "humidity", .float, unit: "%", range: range, lifetime: .fresh(freshFor), help: "Relative humidity, 2 m above the ground")
    case .condition:
      Property(
        "condition", .string, lifetime: .fresh(freshFor), help: "Weather condition")
    case .uvIndex: Property("uv-index", .float, range: range, lifetime: .fresh(freshFor), help: "UV index")
    case .place: Property("place", .string, lifetime: .retained, help: "Place that was found for the configured name")
    case .lastUpdate: Property("last-update", .string, lifetime: .retained, help: "Time of the last response (UTC)")
    }
  }
}

/// The names of weather codes.
enum WeatherCondition {
  private static let names: [(codes: [Int], name: String)] = [
    ([0], "Clear"), ([1], "Mostly clear"), ([2], "Partly cloudy"), ([3], "Cloudy"), ([45, 48], "Foggy"), ([51, 53, 55], "Drizzle"),
    ([56, 57], "Freezing drizzle"), ([61, 63], "Rain"), ([65], "Heavy rain"), ([66, 67], "Freezing rain"), ([71, 73], "Snow"),
    ([75], "Heavy snow"), ([77], "Snow grains"), ([80, 81], "Showers"), ([82], "Heavy showers"), ([85, 86], "Snow showers"),
    ([95], "Thunderstorms"), ([96, 99], "Thunderstorms with hail"),
  ]

  static let all = names.map(\.name)

  /// The name of a code; nil if the WMO's table does not list it.
  static func name(_ code: Int) -> String? { names.first { $0.codes.contains(code) }?.name }
}
