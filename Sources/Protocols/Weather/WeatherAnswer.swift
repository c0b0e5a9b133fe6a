// Parses the responses of both services. The responses are untrusted: each error has its own message, an implausible value is absent, and
// no message contains the coordinates.
// Source: open-meteo.com, the documentation of the forecast and geocoding APIs (fields, units, format of errors).

/// Why a response cannot be used.
struct WeatherError: Error, Equatable {
  /// When the request is repeated: `soon` is after a pause that grows with each failure, `hourly` is after an hour.
  enum Retry { case soon, hourly }
  var message: String
  var retry = Retry.soon
}

/// The weather. Each value can be absent, with a reason.
struct WeatherReport: Sendable, Equatable {
  var temperature: Reading.Content
  var humidity: Reading.Content
  var condition: Reading.Content
  var uvIndex: Reading.Content

  subscript(_ property: WeatherProperty) -> Reading.Content? {
    switch property {
    case .temperature: temperature
    case .humidity: humidity
    case .condition: condition
    case .uvIndex: uvIndex
    case .place, .lastUpdate: nil
    }
  }
}

enum WeatherAnswer {
  /// Parses a response of the forecast service.
  static func weather(_ response: HTTPResponse) throws(WeatherError) -> WeatherReport {
    let root = try document(response, of: "the weather service", key: "url")
    guard let current = root["current"], current.kind == .object else {
      throw WeatherError(message: "no weather in the response of the weather service: check the key `url`")
    }
    let units = root["current_units"]
    let report = WeatherReport(
      temperature: number("temperature_2m", .temperature, in: current, units, unit: "°C"),
      humidity: number("relative_humidity_2m", .humidity, in: current, units, unit: "%"),
      condition: condition(in: current, units), uvIndex: number("uv_index", .uvIndex, in: current, units, unit: ""))
    let isEmpty = WeatherProperty.inResponse.allSatisfy { if case .value? = report[$0] { false } else { true } }
    if isEmpty { throw WeatherError(message: "none of the requested values in the response of the weather service: check the key `url`") }
    return report
  }

  /// Parses a response of the geocoding service: the place's coordinates and name.
  static func place(_ response: HTTPResponse) throws(WeatherError) -> (coordinates: Coordinates, name: String) {
    let root = try document(response, of: "the geocoding service", key: "geocoding-url")
    guard let results = root["results"], results.kind != .array || !results.elements.isEmpty else {
      let message = "place not found by the geocoding service: check its spelling, or set latitude and longitude"
      throw WeatherError(message: message, retry: .hourly)
    }
    guard let first = results.elements.first else {
      throw WeatherError(message: "no results in the response of the geocoding service: check the key `geocoding-url`")
    }
    guard let latitude = first["latitude"]?.float, let longitude = first["longitude"]?.float,
      (-90...90).contains(latitude), (-180...180).contains(longitude)
    else {
      throw WeatherError(message: "no coordinates in the response of the geocoding service: check the key `geocoding-url`")
    }
    let names = [first["name"], first["country"]].compactMap { $0?.text }.map { visible($0, limit: 60) }.filter { !$0.isEmpty }
    return (Coordinates(latitude: latitude, longitude: longitude), names.joined(separator: ", "))
  }

  // MARK: The whole response

  private static func document(_ response: HTTPResponse, of service: String, key: String) throws(WeatherError) -> JSONNode {
    switch response {
    case .failed(let message): throw WeatherError(message: message)
    case .answered(200, let type, let body):
      if let type, type.hasSuffix("html") || type == "application/xhtml+xml" {
        throw WeatherError(message: "\(service) returned a web page: check the key `\(key)`, and whether the network requires a login")
      }
      guard let root = JSONNode(untrusted: body) else {
        throw WeatherError(message: "\(service) returned invalid JSON: check the key `\(key)`")
      }
      guard root.kind == .object else {
        throw WeatherError(message: "\(service) returned JSON that is not an object: check the key `\(key)`")
      }
      if let reason = refusal(in: root) { throw WeatherError(message: "\(service) rejected the request: \(reason)") }
      return root
    case .answered(429, _, _):
      throw WeatherError(message: "\(service) limits the request rate (429): next request in an hour", retry: .hourly)
    case .answered(let status, _, _) where (300..<400).contains(status):
      throw WeatherError(message: "\(service) redirects (\(status)), which is not supported: check the key `\(key)`")
    case .answered(let status, _, let body) where (400..<500).contains(status):
      let reason = JSONNode(untrusted: body).flatMap { refusal(in: $0) } ?? "check the key `\(key)`"
      throw WeatherError(message: "\(service) rejected the request (\(status)): \(reason)")
    case .answered(let status, _, _):
      throw WeatherError(message: "\(service) failed (\(status)); the request will be repeated")
    }
  }

  /// The reason in `{"error": true, "reason": "…"}`. It may contain the coordinates, so digits are removed.
  private static func refusal(in root: JSONNode) -> String? {
    guard root.kind == .object, root["error"]?.kind == .true else { return nil }
    let reason = root["reason"]?.text ?? "no reason given"
    var message = ""
    for character in visible(reason, limit: 120) {
      if !character.isNumber { message.append(character) } else if message.last != "#" { message.append("#") }
    }
    return message
  }

  // MARK: Values

  private static func number(
    _ key: String, _ property: WeatherProperty, in current: JSONNode, _ units: JSONNode?, unit: String
  ) -> Reading.Content {
    guard let node = current[key] else { return .absent("not reported by the weather service") }
    guard let number = node.float else { return .absent("not a number in the weather service's response") }
    if let reason = unexpectedUnit(key, units, unit) { return .absent(reason) }
    guard let range = property.range, range.contains(number) else {
      return .absent("implausible value \(Value.text(number)) from the weather service")
    }
    return .value(.float(number))
  }

  private static func condition(in current: JSONNode, _ units: JSONNode?) -> Reading.Content {
    guard let node = current["weather_code"] else { return .absent("not reported by the weather service") }
    guard let code = node.int else { return .absent("no weather code in the weather service's response") }
    if let reason = unexpectedUnit("weather_code", units, "wmo code") { return .absent(reason) }
    guard let name = WeatherCondition.name(code) else { return .absent("unknown weather code \(code)") }
    return .value(.string(name))
  }

  /// Why the reported unit is not the expected one; nil if it is, or if no unit is reported.
  private static func unexpectedUnit(_ key: String, _ units: JSONNode?, _ expected: String) -> String? {
    guard let node = units?[key] else { return nil }
    guard let unit = node.text else { return "no unit in the weather service's response" }
    return unit == expected ? nil : "unexpected unit \"\(visible(unit, limit: 20))\" from the weather service"
  }
}
