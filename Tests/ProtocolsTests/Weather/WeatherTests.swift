import Peers
import Testing

@testable import Protocols

/// When the weather is requested, how long it is published, and what is stored.
@Suite struct WeatherTests {
  @Test func `the values of a response are published, and requested again at every interval`() throws {
    var rig = try WeatherRig()
    rig.start(for: 2 * 3600 * .second)
    #expect(rig.requests.map { $0.at / .minute } == [0, 15, 30, 45, 60, 75, 90, 105, 120])
    let url = "https://api.open-meteo.com/v1/forecast?latitude=52.52&longitude=13.41&"
    let fields = "current=temperature_2m,relative_humidity_2m,weather_code,uv_index&temperature_unit=celsius&timezone=auto"
    #expect(rig.requests[0].request.url == url + fields && rig.requests[0].request.method == "GET")
    #expect(rig.number("temperature") == 9 && rig.number("humidity") == 43 && rig.number("uv-index") == 4.85)
    #expect(rig.text("condition") == "Partly cloudy" && rig.text("last-update") == "2026-01-05T13:45:00Z")
    #expect(rig.absence("place") == "not configured by name" && rig.status == "live" && rig.fault == nil)
  }

  @Test func `a place is looked up once, and again when another is configured`() throws {
    let zurich: [String: Value] = ["place": .string("Zürich"), "geocoding-url": .string("http://127.0.0.1:8080/")]
    var rig = try WeatherRig(zurich)
    rig.start(for: .minute)
    #expect(rig.requests.map(\.request.url).first == "http://127.0.0.1:8080/v1/search?name=Z%C3%BCrich&count=1")
    #expect(rig.requests.count == 2 && rig.text("place") == "Zürich, Switzerland" && rig.number("temperature") == 11.1)
    rig.now += 40 * .minute
    try rig.restart(zurich, for: .minute)
    #expect(rig.requests.count == 1 && rig.requests[0].request.url.contains("/v1/forecast?latitude=47.36667&longitude=8.55&"))
    try rig.restart(["place": .string("Quito")])
    #expect(rig.absence("place") == "not resolved yet" && rig.absence("temperature") == "no response yet")
    rig.run(for: .minute)
    #expect(rig.requests.count == 2 && rig.text("place") == "Quito, Ecuador" && rig.number("temperature") == 29.9)
  }

  @Test func `an unknown place is a fault with a remedy, and is requested once an hour`() throws {
    var rig = try WeatherRig(["place": .string("Nowhere at all")])
    rig.start(for: 59 * .minute)
    #expect(rig.requests.count == 1 && rig.status == "unknown")
    #expect(rig.fault == "place not found by the geocoding service: check its spelling, or set latitude and longitude")
    #expect(rig.absence("temperature") == rig.fault)
    rig.run(for: 2 * .minute)
    #expect(rig.requests.count == 2)
  }

  @Test func `values survive failures until they are stale, and retries become less frequent`() throws {
    var rig = try WeatherRig()
    rig.start(for: .minute)
    rig.answer = .failed("api.open-meteo.com cannot be reached: connection refused")
    rig.run(for: 43 * .minute)
    #expect(rig.number("temperature") == 9 && rig.status == "failing")
    #expect(rig.fault == "api.open-meteo.com cannot be reached: connection refused")
    rig.run(for: 2 * .minute)
    #expect(rig.absence("temperature") == rig.fault && rig.status == "unknown" && rig.text("last-update") == "2026-01-05T12:00:00Z")
    rig.run(for: 30 * .minute)
    #expect(rig.requests.map { $0.at / .minute } == [0, 15, 16, 18, 22, 30, 45, 60, 75])
    rig.answer = nil
    rig.run(for: 16 * .minute)
    #expect(rig.number("temperature") == 9 && rig.status == "live" && rig.fault == nil)
  }

  @Test func `a service that limits the rate is not queried for an hour`() throws {
    var rig = try WeatherRig()
    rig.answer = .answered(status: 429, type: "application/json", body: [])
    rig.start(for: 59 * .minute)
    #expect(rig.requests.count == 1 && rig.fault?.contains("429") == true)
    rig.refresh()
    #expect(rig.code() == "rate-limited" && rig.requests.count == 1)
    rig.run(for: 2 * .minute)
    #expect(rig.requests.count == 2)
    // A whole day of failures stays far below 10,000 calls.
    rig.answer = .failed("no route")
    rig.run(for: 24 * 3600 * .second)
    #expect(rig.requests.count < 150)
  }

  @Test func `a request without a response is repeated, and a late response is ignored`() throws {
    var rig = try WeatherRig()
    rig.delay = nil
    rig.start(for: .minute)
    rig.refresh()
    rig.run(for: .minute)
    #expect(rig.refusal().contains("got no response") && rig.requests.count == 1)
    rig.discardResponse()
    rig.delay = .second
    rig.give(.response(1, .failed("late")))
    #expect(rig.fault?.contains("got no response") == true)
    rig.run(for: 2 * .minute)
    #expect(rig.requests.count == 2 && rig.number("temperature") == 9)
  }

  @Test func `refresh completes with the response, and is limited to one request a minute`() throws {
    var rig = try WeatherRig()
    rig.start(for: 5 * .minute)
    rig.refresh(1)
    rig.refresh(2)
    #expect(rig.requests.count == 2 && rig.results.isEmpty)
    rig.run(for: .second)
    #expect(rig.isDone(1) && rig.isDone(2))
    rig.refresh(3)
    #expect(rig.refusal(3).contains("try again in 59 s") && rig.requests.count == 2)
    rig.run(for: .minute)
    rig.answer = .answered(status: 503, type: "text/html", body: [])
    rig.refresh(4)
    rig.give(.cancelled(4))
    rig.refresh(5)
    rig.run(for: .second)
    #expect(rig.results[4] == nil && rig.refusal(5).contains("failed (503)") && rig.number("temperature") == 9)
    rig.give(.perform(6, .set(property: 0, .float(3))))
    #expect(rig.code(6) == "read-only" && rig.refusal(6) == "the weather is read-only")
  }

  @Test func `the last response is restored after a restart with its age`() throws {
    var rig = try WeatherRig()
    rig.start(for: .minute)
    rig.answer = .failed("no network")
    rig.now += 9 * .minute
    try rig.restart(for: .minute)
    #expect(rig.number("temperature") == 9 && rig.requests.isEmpty && rig.status == "live", "it is not due yet")
    #expect((9 * .minute...10 * .minute).contains(rig.ages["temperature"] ?? 0))
    rig.run(for: 20 * .minute)
    #expect(rig.number("temperature") == 9 && rig.status == "failing")
    rig.run(for: 15 * .minute)
    #expect(rig.absence("temperature") == "no network", "45 minutes after the response, not after the restart")
    // A response for another location is not published.
    try rig.restart(["latitude": .float(52.53), "longitude": .float(13.41)])
    #expect(rig.absence("temperature") == "no response yet" && rig.requests.count == 1)
  }

  @Test func `values expire even if the clock is set back`() throws {
    var rig = try WeatherRig()
    rig.start(for: .minute)
    rig.answer = .failed("no network")
    rig.wall -= 3600 * 1_000_000
    try rig.restart(for: .minute)
    #expect(rig.absence("temperature") == "no network", "a response with a time in the future has no age")
    // Restored while the clock is behind; it is too old once the clock is right.
    rig.wall += 3600 * 1_000_000
    try rig.restart()
    #expect(rig.number("temperature") == 9)
    // The clock is set forward by ten minutes, so the response is older than assumed.
    rig.wall += 10 * 60 * 1_000_000
    rig.run(for: 14 * .minute)
    #expect(rig.number("temperature") == 9 && rig.ages["temperature"] ?? 0 > 10 * .minute)
    rig.wall += 2 * 3600 * 1_000_000
    rig.run(for: .minute)
    #expect(rig.absence("temperature")?.contains("the clock was set") == true && rig.status == "unknown")
    rig.wall = .max / 2
    try rig.restart(for: .minute)
    #expect(rig.number("temperature") == nil)
  }

  @Test func `a stopped device sends no requests`() throws {
    var rig = try WeatherRig()
    rig.start(for: 20 * .minute)
    rig.delay = nil
    rig.refresh(1)
    rig.run(for: .minute)
    rig.refresh(2)
    rig.give(.stopping)
    rig.discardResponse()
    #expect(rig.hasStopped && rig.absence("temperature") == "the daemon is stopping" && rig.machine.nextWake == nil)
    #expect(rig.results[1]?.count == 1)
    rig.refresh(3)
    #expect(rig.results[3] == [.failure(.notConnected("the daemon is stopping"))])
    let asked = rig.requests.count
    rig.run(for: 3600 * .second)
    #expect(rig.requests.count == asked)
  }

  @Test func `the location must be configured in exactly one way`() {
    func refusal(_ options: [String: Value]) -> String? {
      var all = options
      for option in Kind.weather.options where all[option.name] == nil { all[option.name] = option.defaultValue }
      do throws(OptionError) {
        _ = try Kind.weather.make(Setup(options: all))
        return nil
      } catch { return error.option }
    }
    let (north, east) = (Value.float(1), Value.float(2))
    #expect(refusal([:]) == "place" && refusal(["latitude": north]) == "longitude" && refusal(["longitude": east]) == "latitude")
    #expect(refusal(["latitude": north, "longitude": east]) == nil && refusal(["place": .string("Oslo")]) == nil)
    #expect(refusal(["latitude": north, "longitude": east, "place": .string("Oslo")]) == "place")
    for name in ["", "42", "a\nb", String(repeating: "x", count: 101)] { #expect(refusal(["place": .string(name)]) == "place") }
    let oslo = ["place": Value.string("Oslo")]
    for url in ["", "https://", "ftp://x", "api.open-meteo.com", "https://x?y", "https://x y", "http:///x", "https://x#y"] {
      #expect(refusal(oslo.merging(["url": .string(url)]) { $1 }) == "url", "\(url)")
      #expect(refusal(oslo.merging(["geocoding-url": .string(url)]) { $1 }) == "geocoding-url", "\(url)")
    }
    for proxy in ["a b", "foo", "http:/x", "http://", "ftp://x", "//x", "http:///x"] {
      #expect(refusal(oslo.merging(["proxy": .string(proxy)]) { $1 }) == "proxy", "\(proxy)")
    }
    #expect(refusal(oslo.merging(["proxy": .string("SOCKS5h://127.0.0.1:9050")]) { $1 }) == nil)
    #expect(refusal(oslo.merging(["proxy": .string("")]) { $1 }) == nil, "no proxy, even if the environment has one")
  }

  @Test func `decimals have a point, and place names are percent-encoded`() {
    #expect(
      [0, 52.52, -0.22985, 179.999999, -90, 0.00001, -0.000001].map(WeatherRequest.decimal) == [
        "0", "52.52", "-0.22985", "180", "-90", "0.00001", "0",
      ])
    #expect(WeatherRequest.encoded("São Paulo/&?=#%") == "S%C3%A3o%20Paulo%2F%26%3F%3D%23%25")
    #expect(WallTime.isoTime(0) == "1970-01-01T00:00:00Z" && WallTime.isoTime(1_709_210_096_999_999) == "2024-02-29T12:34:56Z")
    #expect(WallTime.isoTime(-1_000_000) == "1969-12-31T23:59:59Z")
  }
}
