// Weather end to end: the real daemon queries a simulated service over HTTP.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Weather") struct WeatherTests {
    private func service(_ rig: Rig, _ arguments: String..., on place: String = "tcp:127.0.0.1:0") throws -> (Program, url: String) {
      let program = try rig.start("vehiclesim", ["weather", "--on", place, "-v"] + arguments)
      try #require(wait { program.stdout.contains("\n") }, "the service prints nothing: \(program.stderr)")
      return (program, program.stdout.split(separator: "\n").first.map(String.init) ?? "")
    }

    private func configure(_ rig: Rig, _ url: String, place: String) throws {
      try rig.write("[device.weather]\nkind = \"weather\"\n\(place)\nurl = \"\(url)\"\ngeocoding-url = \"\(url)\"\nproxy = \"\"\n")
    }

    @Test func `weather is published, survives failures and restarts, and follows the configured place`() throws {
      let rig = try Rig()
      let (service, url) = try service(rig)
      try configure(rig, url, place: "latitude = 52.52\nlongitude = 13.41")
      let first = try rig.daemon(arguments: "--log-level", "trace")
      #expect(wait { rig.get("weather.temperature") == "9" })
      #expect(rig.get("humidity") == "43" && rig.get("condition") == "Partly cloudy" && rig.get("uv-index") == "4.85")
      #expect(rig.vehiclectl("get", "weather.place").errors.contains("not configured by name"))
      let soon = rig.vehiclectl("do", "weather.refresh")
      #expect(soon.status == 1 && soon.errors.contains("try again in"), "\(soon.errors)")
      let status = rig.vehiclectl("status", "--json").output + rig.vehiclectl("describe", "weather").output
      #expect(first.end() == 0)
      let journal = first.stderr
      #expect(!(status + journal).contains("52.52") && !(status + journal).contains("13.41"), "\(journal)")

      // The next daemon publishes the stored values, and a failing service does not withdraw them.
      service.end()
      let (troubled, _) = try self.service(rig, "--fault", "html", on: "tcp:" + url.dropFirst("http://".count))
      let second = try rig.daemon()
      #expect(wait { rig.get("weather.temperature") == "9" })
      let failed = rig.vehiclectl("do", "weather.refresh")
      #expect(failed.status == 1 && failed.errors.contains("a web page"), "\(failed.errors)")
      #expect(rig.get("weather.temperature") == "9")
      #expect(rig.vehiclectl("status").output.contains("a web page"))
      #expect(rig.vehiclectl("doctor").output.contains("a web page"))

      // Another place, by its name.
      troubled.end()
      let (healthy, _) = try self.service(rig, on: "tcp:" + url.dropFirst("http://".count))
      try configure(rig, url, place: "place = \"zürich\"")
      #expect(rig.vehiclectl("reload").output.contains("weather"))
      #expect(wait { rig.get("weather.temperature") == "11.1" })
      #expect(rig.get("weather.place") == "Zürich, Switzerland")
      #expect(wait { healthy.stderr.contains("request for /v1/search") })
      #expect(rig.vehiclectl("disconnect", "weather").errors.contains("the device has no link"))
      #expect(second.isRunning && second.end() == 0)
    }

    @Test func `a service that never responds does not delay the daemon`() throws {
      let rig = try Rig()
      let (service, url) = try service(rig, "--fault", "slow:1:3600000")
      try configure(rig, url, place: "latitude = 1\nlongitude = 2")
      let daemon = try rig.daemon()
      #expect(wait { service.stderr.contains("request for /v1/forecast") })
      #expect(rig.vehiclectl("get", "weather.temperature").errors.contains("no response yet"))
      #expect(daemon.end() == 0)
    }
  }
}
