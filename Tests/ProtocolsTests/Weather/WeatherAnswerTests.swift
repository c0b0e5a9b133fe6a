import Testing

@testable import Peers
@testable import Protocols

/// Responses of every kind: those without weather are reported with a reason, and the location is never revealed.
@Suite struct WeatherAnswerTests {
  static let vector = """
    {"latitude":52.52,"longitude":13.42,"utc_offset_seconds":3600,"timezone":"Europe/Berlin","elevation":38.0,
    "current_units":{"time":"iso8601","interval":"seconds","temperature_2m":"°C","relative_humidity_2m":"%","weather_code":"wmo code","uv_index":""},
    "current":{"time":"2026-01-05T12:15","interval":900,"temperature_2m":20.2,"relative_humidity_2m":43,"weather_code":2,"uv_index":4.85}}
    """

  private func ok(_ body: String, type: String? = "application/json") -> HTTPResponse {
    .answered(status: 200, type: type, body: Array(body.utf8))
  }

  private func failure(_ response: HTTPResponse) -> String {
    do throws(WeatherError) { return "\(try WeatherAnswer.weather(response))" } catch { return error.message }
  }

  @Test func `the published example is read`() throws {
    let report = try WeatherAnswer.weather(ok(Self.vector))
    #expect(report.temperature == .value(.float(20.2)) && report.humidity == .value(.float(43)))
    #expect(report.condition == .value(.string("Partly cloudy")) && report.uvIndex == .value(.float(4.85)))
  }

  @Test func `every code of the table has a name, and no other has one`() {
    let known = (-5...120).filter { WeatherCondition.name($0) != nil }
    #expect(
      known == [0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86, 95, 96, 99])
    #expect(WeatherCondition.name(3) == "Cloudy" && WeatherCondition.name(99) == "Thunderstorms with hail")
    #expect(WeatherCondition.all.allSatisfy { $0.utf8.count <= 31 && $0.utf8.allSatisfy { $0 < 0x80 } })
  }

  @Test(arguments: [
    ("\"temperature_2m\":20.2", "\"temperature_2m\":null", "not reported by the weather service"),
    ("\"temperature_2m\":20.2,", "", "not reported by the weather service"),
    ("\"temperature_2m\":20.2", "\"temperature_2m\":\"20.2\"", "not a number in the weather service's response"),
    ("\"temperature_2m\":20.2", "\"temperature_2m\":[20.2]", "not a number in the weather service's response"),
    ("\"temperature_2m\":20.2", "\"temperature_2m\":1e999", "not a number in the weather service's response"),
    ("\"temperature_2m\":20.2", "\"temperature_2m\":70.1", "implausible value 70.1 from the weather service"),
    ("\"temperature_2m\":20.2", "\"temperature_2m\":-1e300", "implausible value -1e+300 from the weather service"),
    ("\"°C\"", "\"°F\"", "unexpected unit \"°F\" from the weather service"),
    ("\"°C\"", "7", "no unit in the weather service's response"),
  ]) func `an invalid value is absent, and the others are published`(_ old: String, _ new: String, _ reason: String) throws {
    let report = try WeatherAnswer.weather(ok(Self.replacing(old, by: new)))
    #expect(report.temperature == .absent(reason), "\(report.temperature)")
    #expect(report.humidity == .value(.float(43)))
  }

  @Test(arguments: [
    ("\"weather_code\":2", "\"weather_code\":200", "unknown weather code 200"),
    ("\"weather_code\":2", "\"weather_code\":1.5", "no weather code in the weather service's response"),
    ("\"wmo code\"", "\"colour\"", "unexpected unit \"colour\" from the weather service"),
  ]) func `an unknown condition is absent`(_ old: String, _ new: String, _ reason: String) throws {
    #expect(try WeatherAnswer.weather(ok(Self.replacing(old, by: new))).condition == .absent(reason))
  }

  private static func replacing(_ old: String, by new: String) -> String {
    let parts = vector.split(separator: old, maxSplits: 1, omittingEmptySubsequences: false)
    return parts.joined(separator: new)
  }

  @Test func `a response without weather is rejected with the reason`() {
    #expect(failure(ok("<html>", type: "text/html")).contains("a web page: check the key `url`, and whether the network requires a login"))
    #expect(failure(ok("<html>", type: nil)) == "the weather service returned invalid JSON: check the key `url`")
    #expect(failure(ok("[1,2]")) == "the weather service returned JSON that is not an object: check the key `url`")
    #expect(failure(ok("{}")) == "no weather in the response of the weather service: check the key `url`")
    #expect(failure(ok(#"{"current":[]}"#)) == "no weather in the response of the weather service: check the key `url`")
    #expect(failure(ok(#"{"current":{"temperature_2m":null}}"#)).contains("none of the requested values"))
    #expect(failure(ok(String(repeating: "[", count: 100_000))).contains("invalid JSON"))
    #expect(failure(ok(String(repeating: #"{"a":"#, count: 100_000))).contains("invalid JSON"))
    #expect(failure(ok(String(Self.vector.dropLast(30)))).contains("invalid JSON"))
    #expect(failure(.answered(status: 301, type: nil, body: [])).contains("redirects (301), which is not supported: check the key `url`"))
    #expect(failure(.answered(status: 429, type: nil, body: [])).contains("(429)"))
    #expect(failure(.answered(status: 503, type: "text/html", body: [])).contains("failed (503)"))
    #expect(
      failure(.answered(status: 404, type: "text/html", body: [])) == "the weather service rejected the request (404): check the key `url`")
    #expect(failure(.failed("the name of x is not known")) == "the name of x is not known")
  }

  @Test func `coordinates are removed from a reason`() {
    let body = Array(#"{"error":true,"reason":"Latitude must be in range of -90 to 90°. Given: 152.52371.\u001b[2J"}"#.utf8)
    let message = failure(.answered(status: 400, type: "application/json", body: body))
    #expect(message == "the weather service rejected the request (400): Latitude must be in range of -# to #°. Given: #.#.[#J")
  }

  @Test func `a place is read from a response, or rejected with the reason`() throws {
    func place(_ body: String) -> String {
      do throws(WeatherError) {
        let found = try WeatherAnswer.place(ok(body))
        return "\(found.coordinates.latitude) \(found.coordinates.longitude) \(found.name)"
      } catch { return error.message }
    }
    #expect(place(#"{"results":[{"name":"Berlin","latitude":52.5,"longitude":13.4,"country":"Germany"}]}"#) == "52.5 13.4 Berlin, Germany")
    #expect(place(#"{"results":[{"latitude":-1,"longitude":2}]}"#) == "-1.0 2.0 ")
    for body in ["{}", #"{"results":null}"#, #"{"results":[]}"#] { #expect(place(body).contains("place not found")) }
    for body in [#"{"results":[7]}"#, #"{"results":[{"latitude":91,"longitude":0}]}"#, #"{"results":[{"latitude":"1","longitude":0}]}"#] {
      #expect(place(body).contains("no coordinates"), "\(body)")
    }
    #expect(place(#"{"results":{"a":1}}"#).contains("no results"))
  }

  @Test(arguments: ["error", "limit", "down", "html", "null", "redirect", "truncated", "garbage", "huge", "unit"])
  func `no fault of the service removes published values or reveals the location`(_ name: String) throws {
    var rig = try WeatherRig()
    rig.start(for: .minute)
    rig.surroundings.faults = [try ForecastFault(name)]
    rig.run(for: 20 * .minute)
    if name == "unit" {
      #expect(rig.absence("temperature")?.contains("unexpected unit \"°F\"") == true && rig.number("humidity") == 43)
    } else {
      #expect(rig.number("temperature") == 9 && rig.fault != nil && rig.status == "failing", "\(rig.fault ?? "")")
    }
    #expect(!rig.output.contains { $0.contains("52.52") || $0.contains("13.41") })
    rig.surroundings.faults = []
    rig.run(for: 70 * .minute)
    #expect(rig.number("temperature") == 9 && rig.fault == nil)
  }

  @Test func `damaged responses yield values in range or an error`() throws {
    var random = SeededRandom(seed: 6)
    let place = #"{"results":[{"name":"Berlin","latitude":52.5,"longitude":13.4,"country":"Germany"}],"generationtime_ms":0.5}"#
    var counts = (read: 0, refused: 0)
    for turn in 0..<100_000 {
      var body = Array((turn.isMultiple(of: 4) ? place : Self.vector).utf8)
      for _ in 0...Int.random(in: 0..<4, using: &random) { Self.damage(&body, &random) }
      let response = HTTPResponse.answered(status: 200, type: nil, body: body)
      do throws(WeatherError) {
        if turn.isMultiple(of: 4) {
          let point = try WeatherAnswer.place(response).coordinates
          #expect((-90...90).contains(point.latitude) && (-180...180).contains(point.longitude))
        } else {
          Self.check(try WeatherAnswer.weather(response))
        }
        counts.read += 1
      } catch {
        #expect(!error.message.isEmpty)
        counts.refused += 1
      }
      _ = WeatherStore.place(body, for: "Berlin")
      _ = WeatherStore.answer(body, for: "52.52,13.41")
    }
    #expect(counts.read > 5000 && counts.refused > 5000, "\(counts)")
  }

  /// Changes, inserts, removes or duplicates bytes at a random position.
  private static func damage(_ body: inout [UInt8], _ random: inout SeededRandom) {
    guard !body.isEmpty else { return }
    let place = Int.random(in: 0..<body.count, using: &random)
    let special = Array("[]{}\":,-.eE0 9\\u".utf8) + [0, 0x80, 0xFF]
    let byte = special[Int.random(in: 0..<special.count, using: &random)]
    switch UInt8.random(in: 0..<4, using: &random) {
    case 0: body[place] = byte
    case 1: body.remove(at: place)
    case 2: body.insert(byte, at: place)
    default: body.insert(contentsOf: body[place..<min(body.count, place + 30)], at: Int.random(in: 0...body.count, using: &random))
    }
  }

  /// Checks that every value is in its range.
  private static func check(_ report: WeatherReport) {
    let table = WeatherProperty.table(freshFor: .second)
    for property in WeatherProperty.inResponse {
      guard case .value(let value)? = report[property] else { continue }
      #expect((try? table[property.rawValue].rule.accept(value)) == value, "\(value)")
    }
  }
}
