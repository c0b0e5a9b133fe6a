// What a weather device shows: the table, and the words for the weather codes of the WMO. The house counts in SI: whoever
// needs °F converts.
// Facts: protocols of the mirror, §9 (WMO code table 4677 as Open-Meteo uses it).

/// The properties, in the order of the schema.
enum WeatherProperty: Int, CaseIterable {
  case temperature, humidity, condition, uvIndex, place, lastUpdate

  /// Those that an answer holds, and that grow old.
  static let live: [WeatherProperty] = [.temperature, .humidity, .condition, .uvIndex]

  /// What no weather on Earth exceeds.
  var range: ClosedRange<Double>? {
    switch self {
    case .temperature: -100...70
    case .humidity: 0...100
    case .uvIndex: 0...30
    case .condition, .place, .lastUpdate: nil
    }
  }

  static func table(freshFor: Nanoseconds) -> [Property] {
    allCases.map { one in
      switch one {
      case .temperature:
        Property(
          "temperature", .float, unit: "°C", range: one.range, lifetime: .fresh(freshFor), help: "Air temperature, 2 m above the ground")
      case .humidity:
        Property(
          "humidity", .float, unit: "%", range: one.range, lifetime: .fresh(freshFor), help: "Relative humidity, 2 m above the ground")
      case .condition:
        Property(
          "condition", .string, lifetime: .fresh(freshFor), help: "What the sky does, in a word or two")
      case .uvIndex: Property("uv-index", .float, range: one.range, lifetime: .fresh(freshFor), help: "UV index")
      case .place: Property("place", .string, lifetime: .retained, help: "What the configured name was taken for")
      case .lastUpdate: Property("last-update", .string, lifetime: .retained, help: "When the weather was told last, in UTC")
      }
    }
  }
}

/// The words for weather codes.
enum WeatherCondition {
  private static let words: [(codes: [Int], word: String)] = [
    ([0], "Clear"), ([1], "Mostly clear"), ([2], "Partly cloudy"), ([3], "Cloudy"), ([45, 48], "Foggy"), ([51, 53, 55], "Drizzle"),
    ([56, 57], "Freezing drizzle"), ([61, 63], "Rain"), ([65], "Heavy rain"), ([66, 67], "Freezing rain"), ([71, 73], "Snow"),
    ([75], "Heavy snow"), ([77], "Snow grains"), ([80, 81], "Showers"), ([82], "Heavy showers"), ([85, 86], "Snow showers"),
    ([95], "Thunderstorms"), ([96, 99], "Thunderstorms with hail"),
  ]

  static let all = words.map(\.word)

  /// The word for a code, or nil where the WMO's table has none.
  static func word(_ code: Int) -> String? { words.first { $0.codes.contains(code) }?.word }
}
