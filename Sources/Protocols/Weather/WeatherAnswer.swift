// What the two services answered, read without trust: whatever is no weather has a name, a value that cannot be is absent,
// and nothing that could tell where somebody lives gets into the words.
// Facts: protocols of the mirror, §9 (fields, units, the form of errors).

/// Why an answer is none.
struct WeatherTrouble: Error, Equatable {
  /// How soon it makes sense to ask again.
  enum Pace { case soon, hourly }
  var words: String
  var pace = Pace.soon
}

/// The weather, value by value.
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
  /// What the forecast service answered.
  static func weather(_ response: HTTPResponse) throws(WeatherTrouble) -> WeatherReport {
    let root = try document(response, of: "the weather service", key: "url")
    guard let current = root["current"], current.kind == .object else {
      throw WeatherTrouble(words: "the weather service's answer holds no weather: check url")
    }
    let units = root["current_units"]
    let report = WeatherReport(
      temperature: number("temperature_2m", .temperature, in: current, units, unit: "°C"),
      humidity: number("relative_humidity_2m", .humidity, in: current, units, unit: "%"),
      condition: condition(in: current, units), uvIndex: number("uv_index", .uvIndex, in: current, units, unit: ""))
    let isEmpty = WeatherProperty.live.allSatisfy { if case .value? = report[$0] { false } else { true } }
    if isEmpty { throw WeatherTrouble(words: "the weather service's answer holds none of the values that were asked for: check url") }
    return report
  }

  /// What the geocoding service answered: where the place is, and what it is called.
  static func place(_ response: HTTPResponse) throws(WeatherTrouble) -> (point: Coordinates, name: String) {
    let root = try document(response, of: "the place service", key: "geocoding-url")
    guard let results = root["results"], results.kind != .array || !results.elements.isEmpty else {
      let words = "the place service knows no place of this name: check its spelling, or give latitude and longitude"
      throw WeatherTrouble(words: words, pace: .hourly)
    }
    guard let first = results.elements.first else {
      throw WeatherTrouble(words: "the place service's answer holds no list: check geocoding-url")
    }
    guard let latitude = first["latitude"]?.float, let longitude = first["longitude"]?.float,
      (-90...90).contains(latitude), (-180...180).contains(longitude)
    else {
      throw WeatherTrouble(words: "the place service's answer does not say where the place is: check geocoding-url")
    }
    let names = [first["name"], first["country"]].compactMap { $0?.text }.map { visible($0, limit: 60) }.filter { !$0.isEmpty }
    return (Coordinates(latitude: latitude, longitude: longitude), names.joined(separator: ", "))
  }

  // MARK: The answer as such

  private static func document(_ response: HTTPResponse, of service: String, key: String) throws(WeatherTrouble) -> JSONNode {
    switch response {
    case .failed(let words): throw WeatherTrouble(words: words)
    case .answered(200, let type, let body):
      if let type, type.hasSuffix("html") || type == "application/xhtml+xml" {
        throw WeatherTrouble(words: "\(service) answers with a web page: check \(key), and whether the network wants a login")
      }
      guard let root = JSONNode(foreign: body) else { throw WeatherTrouble(words: "\(service) answers with what is no JSON: check \(key)") }
      guard root.kind == .object else { throw WeatherTrouble(words: "\(service) answers with what is no object: check \(key)") }
      if let reason = refusal(in: root) { throw WeatherTrouble(words: "\(service) refuses: \(reason)") }
      return root
    case .answered(429, _, _):
      throw WeatherTrouble(words: "\(service) was asked too often (429): it is asked again in an hour", pace: .hourly)
    case .answered(let status, _, _) where (300..<400).contains(status):
      throw WeatherTrouble(words: "\(service) redirects (\(status)), which is not followed: check \(key)")
    case .answered(let status, _, let body) where (400..<500).contains(status):
      let reason = JSONNode(foreign: body).flatMap { refusal(in: $0) } ?? "check \(key)"
      throw WeatherTrouble(words: "\(service) refuses (\(status)): \(reason)")
    case .answered(let status, _, _):
      throw WeatherTrouble(words: "\(service) is in trouble (\(status)): it is asked again")
    }
  }

  /// `{"error": true, "reason": "…"}`. What it says may quote the coordinates: digits are left out.
  private static func refusal(in root: JSONNode) -> String? {
    guard root.kind == .object, root["error"]?.kind == .truth else { return nil }
    let reason = root["reason"]?.text ?? "no reason is given"
    var words = ""
    for character in visible(reason, limit: 120) {
      if !character.isNumber { words.append(character) } else if words.last != "#" { words.append("#") }
    }
    return words
  }

  // MARK: Values

  private static func number(
    _ key: String, _ property: WeatherProperty, in current: JSONNode, _ units: JSONNode?, unit: String
  ) -> Reading.Content {
    guard let node = current[key] else { return .absent("not told by the weather service") }
    guard let number = node.float else { return .absent("the weather service told no number") }
    if let other = foreignUnit(key, units, unit) { return .absent(other) }
    guard let range = property.range, range.contains(number) else {
      return .absent("the weather service told \(Value.text(number)), which cannot be")
    }
    return .value(.float(number))
  }

  private static func condition(in current: JSONNode, _ units: JSONNode?) -> Reading.Content {
    guard let node = current["weather_code"] else { return .absent("not told by the weather service") }
    guard let code = node.whole else { return .absent("the weather service told no weather code") }
    if let other = foreignUnit("weather_code", units, "wmo code") { return .absent(other) }
    guard let word = WeatherCondition.word(code) else { return .absent("the weather service told an unknown code, \(code)") }
    return .value(.string(word))
  }

  /// Why the unit is not ours, where one is told.
  private static func foreignUnit(_ key: String, _ units: JSONNode?, _ wanted: String) -> String? {
    guard let node = units?[key] else { return nil }
    guard let unit = node.text else { return "the weather service told it in no unit" }
    return unit == wanted ? nil : "the weather service told it in another unit, \"\(visible(unit, limit: 20))\""
  }
}
