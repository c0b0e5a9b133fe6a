// Replies of the weather service. Source: Open-Meteo's documentation and public examples (fields, units, error format, missing `results`).

import Protocols

/// The replies of the service.
enum ForecastReply {
  static func error(_ status: Int, _ reason: String) -> HTTPReply {
    HTTPReply(status, JSON.members(["error": .bool(true), "reason": .string(reason)]).text)
  }

  /// The temperature in °C: 30 at the equator, and 1 less for every 2.5° of latitude.
  static func celsius(_ latitude: Double) -> Double { ((30 - abs(latitude) / 2.5) * 10).rounded() / 10 }

  /// The reply to a forecast request.
  static func forecast(_ query: [String: String], valuesAreNull: Bool, alwaysFahrenheit: Bool) -> HTTPReply {
    guard let latitude = query["latitude"].flatMap(Double.init), let longitude = query["longitude"].flatMap(Double.init),
      abs(latitude) <= 90, abs(longitude) <= 180
    else { return error(400, "Latitude must be in range of -90 to 90°. Given: \(query["latitude"] ?? "nothing").") }
    let isFahrenheit = alwaysFahrenheit || query["temperature_unit"] == "fahrenheit"
    let celsius = celsius(latitude)
    let temperature = isFahrenheit ? ((celsius * 1.8 + 32) * 10).rounded() / 10 : celsius
    let units = JSON.members([
      "time": .string("iso8601"), "interval": .string("seconds"), "temperature_2m": .string(isFahrenheit ? "°F" : "°C"),
      "relative_humidity_2m": .string("%"), "weather_code": .string("wmo code"), "uv_index": .string(""),
    ])
    let current = JSON.members([
      "time": .string("2026-01-05T12:15"), "interval": .int(900), "temperature_2m": valuesAreNull ? .null : .float(temperature),
      "relative_humidity_2m": valuesAreNull ? .null : .int(43), "weather_code": valuesAreNull ? .null : .int(2),
      "uv_index": valuesAreNull ? .null : .float(4.85),
    ])
    let root = JSON.members([
      "latitude": .float(latitude), "longitude": .float(longitude), "utc_offset_seconds": .int(3600),
      "timezone": .string("Europe/Berlin"), "elevation": .float(38), "current_units": units, "current": current,
    ])
    return HTTPReply(200, root.text)
  }

  private static let knownPlaces: [(name: String, country: String, latitude: Double, longitude: Double)] = [
    ("Berlin", "Germany", 52.52437, 13.41053), ("Trondheim", "Norway", 63.43049, 10.39506), ("Zürich", "Switzerland", 47.36667, 8.55),
    ("Quito", "Ecuador", -0.22985, -78.52495), ("San Francisco", "United States", 37.77493, -122.41942),
  ]

  /// The reply to a search for a place by name, which has no results if the place is unknown.
  static func places(_ name: String) -> HTTPReply {
    guard let place = knownPlaces.first(where: { $0.name.lowercased() == name.lowercased() }) else {
      return HTTPReply(200, JSON.members(["generationtime_ms": .float(0.5)]).text)
    }
    let result = JSON.members([
      "name": .string(place.name), "latitude": .float(place.latitude), "longitude": .float(place.longitude),
      "country": .string(place.country),
    ])
    return HTTPReply(200, JSON.members(["results": .array([result]), "generationtime_ms": .float(0.5)]).text)
  }
}
