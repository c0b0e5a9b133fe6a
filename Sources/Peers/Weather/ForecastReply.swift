// HTTP/1.1 as a small weather service needs it: one request's line and query in, one reply with its length out; and what the
// service says. Facts: RFC 9112; protocols of the mirror, §9 (fields, units, the form of errors, `results` that is not there).

import Protocols

/// What a client asked.
struct ForecastRequest: Sendable, Equatable {
  var method: String
  var path: String
  var query: [String: String]

  /// Reads a request's head, or gives nil while its empty line has not come.
  init?(_ head: [UInt8]) {
    let text = String(decoding: head, as: UTF8.self)
    let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
    guard lines.count > 2, lines.dropFirst().dropLast().contains("") else { return nil }
    let words = lines[0].split(separator: " ")
    method = words.first.map(String.init) ?? ""
    let target = (words.count > 1 ? words[1] : "").split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    path = target.first.map(String.init) ?? ""
    query = [:]
    for part in (target.count > 1 ? target[1] : "").split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      query[String(pair[0])] = Self.decoded(pair.count > 1 ? pair[1] : "")
    }
  }

  /// Percent-encoding undone.
  private static func decoded(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == 0x25, let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), rest.count >= 2 {
        bytes.append(code)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte == 0x2B ? 0x20 : byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// What the service answers.
struct ForecastReply: Sendable, Equatable {
  var status: Int
  var type: String
  var body: [UInt8]
  var location: String?

  init(_ status: Int, _ body: String, type: String = "application/json; charset=utf-8", location: String? = nil) {
    (self.status, self.type, self.body, self.location) = (status, type, Array(body.utf8), location)
  }

  var bytes: [UInt8] {
    let more = location.map { "Location: \($0)\r\n" } ?? ""
    let head = "HTTP/1.1 \(status) \(Self.words[status] ?? "Unknown")\r\nContent-Type: \(type)\r\nContent-Length: \(body.count)\r\n"
    return Array("\(head)\(more)Connection: close\r\n\r\n".utf8) + body
  }

  private static let words = [
    200: "OK", 302: "Found", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 503: "Service Unavailable",
  ]

  static func refusal(_ status: Int, _ reason: String) -> ForecastReply {
    ForecastReply(status, JSON.members(["error": .bool(true), "reason": .string(reason)]).text)
  }

  /// 30 °C at the equator, a degree less for every two and a half degrees from there.
  static func celsius(_ latitude: Double) -> Double { ((30 - abs(latitude) / 2.5) * 10).rounded() / 10 }

  static func forecast(_ query: [String: String], isEmpty: Bool, isForeign: Bool) -> ForecastReply {
    guard let latitude = query["latitude"].flatMap(Double.init), let longitude = query["longitude"].flatMap(Double.init),
      abs(latitude) <= 90, abs(longitude) <= 180
    else { return refusal(400, "Latitude must be in range of -90 to 90°. Given: \(query["latitude"] ?? "nothing").") }
    let isFahrenheit = isForeign || query["temperature_unit"] == "fahrenheit"
    let celsius = celsius(latitude)
    let temperature = isFahrenheit ? ((celsius * 1.8 + 32) * 10).rounded() / 10 : celsius
    let units = JSON.members([
      "time": .string("iso8601"), "interval": .string("seconds"), "temperature_2m": .string(isFahrenheit ? "°F" : "°C"),
      "relative_humidity_2m": .string("%"), "weather_code": .string("wmo code"), "uv_index": .string(""),
    ])
    let current = JSON.members([
      "time": .string("2026-01-05T12:15"), "interval": .int(900), "temperature_2m": isEmpty ? .null : .float(temperature),
      "relative_humidity_2m": isEmpty ? .null : .int(43), "weather_code": isEmpty ? .null : .int(2),
      "uv_index": isEmpty ? .null : .float(4.85),
    ])
    let root = JSON.members([
      "latitude": .float(latitude), "longitude": .float(longitude), "utc_offset_seconds": .int(3600),
      "timezone": .string("Europe/Berlin"), "elevation": .float(38), "current_units": units, "current": current,
    ])
    return ForecastReply(200, root.text)
  }

  private static let known: [(name: String, country: String, latitude: Double, longitude: Double)] = [
    ("Berlin", "Germany", 52.52437, 13.41053), ("Trondheim", "Norway", 63.43049, 10.39506), ("Zürich", "Switzerland", 47.36667, 8.55),
    ("Quito", "Ecuador", -0.22985, -78.52495), ("San Francisco", "United States", 37.77493, -122.41942),
  ]

  /// The one place that is called so, or an answer without results.
  static func places(_ name: String) -> ForecastReply {
    guard let place = known.first(where: { $0.name.lowercased() == name.lowercased() }) else {
      return ForecastReply(200, JSON.members(["generationtime_ms": .float(0.5)]).text)
    }
    let result = JSON.members([
      "name": .string(place.name), "latitude": .float(place.latitude), "longitude": .float(place.longitude),
      "country": .string(place.country),
    ])
    return ForecastReply(200, JSON.members(["results": .array([result]), "generationtime_ms": .float(0.5)]).text)
  }
}
