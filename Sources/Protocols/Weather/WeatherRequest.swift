// The requests to the two services. Numbers have a decimal point in every locale, and names are percent-encoded.
// Source: open-meteo.com, the documentation of the forecast and geocoding APIs.

enum WeatherRequest {
  /// The timeout of a request: the services usually respond within a second, and a command waits at most ten.
  static let timeout: Nanoseconds = 8 * .second

  /// A request for the forecast at these coordinates.
  static func weather(at coordinates: Coordinates, _ settings: WeatherSettings) -> HTTPRequest {
    let location = "latitude=\(decimal(coordinates.latitude))&longitude=\(decimal(coordinates.longitude))"
    let fields = "current=temperature_2m,relative_humidity_2m,weather_code,uv_index&temperature_unit=celsius&timezone=auto"
    return HTTPRequest("GET", "\(settings.url)/v1/forecast?\(location)&\(fields)", headers: accept, timeout: timeout, proxy: settings.proxy)
  }

  /// A request for the coordinates of a place.
  static func place(_ name: String, _ settings: WeatherSettings) -> HTTPRequest {
    let url = "\(settings.geocodingURL)/v1/search?name=\(encoded(name))&count=1"
    return HTTPRequest("GET", url, headers: accept, timeout: timeout, proxy: settings.proxy)
  }

  private static let accept = ["Accept": "application/json"]

  /// A coordinate with at most five decimals, a resolution of about a metre.
  static func decimal(_ number: Double) -> String {
    let scaled = Int((number * 100_000).rounded())
    let (whole, rest) = abs(scaled).quotientAndRemainder(dividingBy: 100_000)
    var digits = String(String(rest + 100_000).dropFirst())
    while digits.hasSuffix("0") { digits.removeLast() }
    return "\(scaled < 0 ? "-" : "")\(whole)\(digits.isEmpty ? "" : ".\(digits)")"
  }

  /// Percent-encodes everything but the unreserved characters of RFC 3986.
  static func encoded(_ text: String) -> String {
    let hex = Array("0123456789ABCDEF".utf8)
    let bytes = text.utf8.flatMap { byte -> [UInt8] in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: [byte]
      default: [0x25, hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
