// Weather end to end: the real daemon queries a simulated service over HTTP.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Weather") struct WeatherTests {
    private func service(_ house: House, _ arguments: String..., on place: String = "tcp:127.0.0.1:0") throws -> (Program, url: String) {
      let program = try house.start("vehiclesim", ["weather", "--on", place, "-v"] + arguments)
      try #require(wait { program.printed.contains("\n") }, "the service prints nothing: \(program.complaints)")
      return (program, program.printed.split(separator: "\n").first.map(String.init) ?? "")
    }

    private func configure(_ house: House, _ url: String, place: String) throws {
      try house.write("[device.weather]\nkind = \"weather\"\n\(place)\nurl = \"\(url)\"\ngeocoding-url = \"\(url)\"\nproxy = \"\"\n")
    }

    @Test func `weather is published, survives failures and restarts, and follows the configured place`() throws {
      let house = try House()
      let (service, url) = try service(house)
      try configure(house, url, place: "latitude = 52.52\nlongitude = 13.41")
      let first = try house.daemon(arguments: "--log-level", "trace")
      #expect(wait { house.get("weather.temperature") == "9" })
      #expect(house.get("humidity") == "43" && house.get("condition") == "Partly cloudy" && house.get("uv-index") == "4.85")
      #expect(house.vehiclectl("get", "weather.place").errors.contains("not configured by name"))
      let soon = house.vehiclectl("do", "weather.refresh")
      #expect(soon.status == 1 && soon.errors.contains("try again in"), "\(soon.errors)")
      let status = house.vehiclectl("status", "--json").output + house.vehiclectl("describe", "weather").output
      #expect(first.end() == 0)
      let journal = first.complaints
      #expect(!(status + journal).contains("52.52") && !(status + journal).contains("13.41"), "\(journal)")

      // The next daemon publishes the stored values, and a failing service does not withdraw them.
      service.end()
      let (troubled, _) = try self.service(house, "--fault", "html", on: "tcp:" + url.dropFirst("http://".count))
      let second = try house.daemon()
      #expect(wait { house.get("weather.temperature") == "9" })
      let failed = house.vehiclectl("do", "weather.refresh")
      #expect(failed.status == 1 && failed.errors.contains("a web page"), "\(failed.errors)")
      #expect(house.get("weather.temperature") == "9")
      #expect(house.vehiclectl("status").output.contains("a web page"))
      #expect(house.vehiclectl("doctor").output.contains("a web page"))

      // Another place, by its name.
      troubled.end()
      let (healthy, _) = try self.service(house, on: "tcp:" + url.dropFirst("http://".count))
      try configure(house, url, place: "place = \"zürich\"")
      #expect(house.vehiclectl("reload").output.contains("weather"))
      #expect(wait { house.get("weather.temperature") == "11.1" })
      #expect(house.get("weather.place") == "Zürich, Switzerland")
      #expect(wait { healthy.complaints.contains("request for /v1/search") })
      #expect(house.vehiclectl("disconnect", "weather").errors.contains("the device has no link"))
      #expect(second.isRunning && second.end() == 0)
    }

    @Test func `a service that never responds does not delay the daemon`() throws {
      let house = try House()
      let (service, url) = try service(house, "--fault", "slow:1:3600000")
      try configure(house, url, place: "latitude = 1\nlongitude = 2")
      let daemon = try house.daemon()
      #expect(wait { service.complaints.contains("request for /v1/forecast") })
      #expect(house.vehiclectl("get", "weather.temperature").errors.contains("no response yet"))
      #expect(daemon.end() == 0)
    }
  }
}
