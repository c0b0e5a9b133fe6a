// The stored state: the coordinates of the configured place, and the last response with its wall-clock time. Each is stored with the
// configuration that it belongs to, and is ignored if the configuration has changed. The files in the state directory are readable only by
// the daemon (0600).

enum WeatherStore {
  static let placeKey = "place"
  static let answerKey = "answer"

  // MARK: The place

  static func bytes(of coordinates: Coordinates, called name: String, for configuredName: String) -> [UInt8] {
    let json: JSON = [
      "wanted": .string(configuredName), "latitude": .float(coordinates.latitude), "longitude": .float(coordinates.longitude),
      "name": .string(name),
    ]
    return Array(json.text.utf8)
  }

  /// The stored coordinates, if they belong to this place.
  static func place(_ bytes: [UInt8]?, for configuredName: String) -> (coordinates: Coordinates, name: String)? {
    guard let root = bytes.flatMap({ JSONNode(untrusted: $0) }), let stored = root["wanted"]?.text, stored == configuredName,
      let latitude = root["latitude"]?.float, let longitude = root["longitude"]?.float,
      let name = root["name"]?.text, (-90...90).contains(latitude), (-180...180).contains(longitude)
    else { return nil }
    return (Coordinates(latitude: latitude, longitude: longitude), visible(name, limit: 130))
  }

  // MARK: The response

  static func bytes(of report: WeatherReport, at wall: WallTime, for site: String) -> [UInt8] {
    func value(_ content: Reading.Content) -> JSON? {
      switch content {
      case .value(.float(let number)): .float(number)
      case .value(.string(let text)): .string(text)
      default: nil
      }
    }
    let json = JSON.members([
      "site": .string(site), "time": .int(Int(wall.microseconds)), "temperature": value(report.temperature),
      "humidity": value(report.humidity), "condition": value(report.condition), "uv-index": value(report.uvIndex),
    ])
    return Array(json.text.utf8)
  }

  /// The stored response and its wall-clock time in microseconds, if it belongs to this site.
  static func answer(_ bytes: [UInt8]?, for site: String) -> (report: WeatherReport, time: Int64)? {
    guard let root = bytes.flatMap({ JSONNode(untrusted: $0) }), let stored = root["site"]?.text, stored == site,
      let time = root["time"]?.int
    else { return nil }
    let absent = Reading.Content.absent("not reported by the weather service")
    func number(_ property: WeatherProperty, _ key: String) -> Reading.Content {
      guard let number = root[key]?.float, property.range?.contains(number) == true else { return absent }
      return .value(.float(number))
    }
    let condition = root["condition"]?.text.flatMap { WeatherCondition.all.contains($0) ? $0 : nil }
    let report = WeatherReport(
      temperature: number(.temperature, "temperature"), humidity: number(.humidity, "humidity"),
      condition: condition.map { .value(.string($0)) } ?? absent, uvIndex: number(.uvIndex, "uv-index"))
    return (report, Int64(time))
  }
}
