// Positions end to end: the real daemon with a simulated gpsd. Positions must appear only where they are named.

import Foundation
import Testing

extension EndToEndServices {
  @Suite("Position") struct PositionTests {
    /// Starts a simulated gpsd, and writes a configuration for it; returns its link.
    private func gpsd(_ rig: Rig, _ arguments: String..., on place: String = "tcp:127.0.0.1:0", options: String = "") throws -> (
      Program, link: String
    ) {
      let program = try rig.start("vehiclesim", ["gpsd", "--on", place, "--rate", "5"] + arguments)
      try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
      let link = program.stdout.split(separator: "\n").first.map(String.init) ?? ""
      try rig.write("[device.gps]\nkind = \"position\"\nlink = \"\(link)\"\n\(options)\n")
      return (program, link)
    }

    private func isInLoop(_ rig: Rig) -> Bool {
      guard let latitude = rig.get("gps.latitude").flatMap(Double.init), let longitude = rig.get("gps.longitude").flatMap(Double.init)
      else {
        return false
      }
      return (63.4299...63.4391).contains(latitude) && (10.3899...10.4112).contains(longitude)
    }

    /// Whether a text contains a latitude or longitude of the loop as a number of its own; a time that ends in 63.4 s is none.
    private func containsCoordinate(_ text: String) -> Bool {
      text.contains(/\b(63\.4|10\.39|10\.4)\d{3}/.wordBoundaryKind(.simple))
    }

    @Test func `the position is published, but neither logged nor reported`() throws {
      let rig = try Rig()
      let (simulator, link) = try gpsd(rig, "--speed", "72", "--fault", "garbage:3")
      let daemon = try rig.daemon(arguments: "--log-level", "trace")
      #expect(wait { isInLoop(rig) }, "\(daemon.stderr)")
      #expect(rig.get("gps.speed") == "72" && rig.get("gps.fix") == "3d" && rig.get("gps.satellites-used") == "9")
      #expect(rig.get("gps.receiver") == "/dev/ttyUSB0" && rig.get("gps.altitude") == "123")
      let metrics = rig.vehiclectl("metrics").output
      #expect(metrics.contains("vehicle_satellites_used") && !metrics.contains("vehicle_latitude"))
      #expect(rig.vehiclectl("metrics", "--position", "gsp").status == 2)
      #expect(rig.vehiclectl("metrics", "--position", "gps").output.contains("vehicle_latitude_degrees{device=\"gps\"} 63.4"))
      #expect(containsCoordinate("latitude: 63.4301 °") && !containsCoordinate("start_time_seconds 1795704063.4301"))
      let report = rig.vehiclectl("bugreport", "-", "--seconds", "1").output
      #expect(report.contains("latitude: … °") && !containsCoordinate(report), "\(report)")
      // A restart of gpsd.
      simulator.end(SIGKILL)
      #expect(wait { rig.vehiclectl("get", "gps.latitude").status != 0 })
      let (_, again) = try gpsd(rig, on: link)
      #expect(again == link && wait(seconds: 20) { isInLoop(rig) })
      #expect(daemon.end() == 0)
      #expect(!containsCoordinate(daemon.stderr), "\(daemon.stderr)")
    }

    @Test func `a loss of the fix, and a receiver that is unplugged`() throws {
      let rig = try Rig()
      let (_, _) = try gpsd(rig, "--fault", "no-fix:@3:3000", "--fault", "unplug:@9:3000")
      _ = try rig.daemon()
      #expect(wait { isInLoop(rig) })
      #expect(wait { rig.get("gps.fix") == "none" })
      #expect(rig.vehiclectl("get", "gps.latitude").errors.contains("no fix"))
      #expect(wait { isInLoop(rig) })
      #expect(wait(seconds: 15) { rig.vehiclectl("get", "gps.latitude").errors.contains("gpsd has no GPS receiver") })
      #expect(wait(seconds: 20) { isInLoop(rig) })
    }

    @Test func `the history records positions that are named, and exports them as a track`() throws {
      let rig = try Rig()
      let (_, _) = try gpsd(rig)
      _ = try rig.daemon()
      let (socket, configuration) = ("\(rig.directory)/history", "\(rig.directory)/history.toml")
      try rig.write("[history]\nrecord = [\"gps.l*\"]\n", to: configuration)
      let service = try rig.start(
        "vehicled-history",
        ["--socket", socket, "--daemon", rig.socket, "--state", "\(rig.directory)/values", "--config", configuration])
      let history = { (arguments: String...) in rig.vehiclectl("history", arguments[0], "--history-socket", socket, arguments[1]) }
      #expect(wait(seconds: 30) { history("export", "--gpx").output.contains("<trkpt lat=\"63.4") }, "\(service.stderr)")
      let series = history("series", "gps").output
      #expect(series.contains("gps.latitude") && series.contains("gps.longitude"), "\(series)")
      #expect(!series.contains("gps.altitude") && !series.contains("gps.speed"), "not named")
    }

    @Test func `another server on the port is an error with a remedy`() throws {
      let rig = try Rig()
      _ = try gpsd(rig, "--fault", "nmea")
      _ = try rig.daemon()
      #expect(wait { rig.vehiclectl("status", "gps").output.contains("the server sends NMEA 0183 instead of gpsd's JSON") })
      #expect(rig.vehiclectl("doctor").output.contains("set link to gpsd"))
    }

    @Test func `setup recognises gpsd by its port`() throws {
      let rig = try Rig()
      try rig.write("# empty\n")
      _ = try rig.daemon()
      let outcome = rig.run(
        "\(Rig.programs)/vehiclectl",
        ["--socket", rig.socket, "setup", "--yes", "--timeout", "1", "--config", rig.configuration, "tcp:127.0.0.2:2947"])
      #expect(outcome.status == 5 && outcome.errors.contains("check that gpsd runs there"), "\(outcome)")
      #expect(try String(contentsOfFile: rig.configuration, encoding: .utf8).contains("[device.gps]\nkind = \"position\"\n"))
    }

    @Test func `the simulator rejects what it cannot do`() throws {
      let rig = try Rig()
      for (arguments, text) in [
        (["--on", "pty"], "TCP endpoint"), (["--on", "tcp:127.0.0.1:0", "--rate", "0"], "0.1 to 20"),
        (["--on", "tcp:127.0.0.1:0", "--latitude", "90"], "-89 to 89"), (["--on", "tcp:127.0.0.1:0", "--fault", "fog"], "unknown fault"),
      ] {
        let outcome = rig.run("\(Rig.programs)/vehiclesim", ["gpsd"] + arguments)
        #expect(outcome.status == 2 && outcome.errors.contains(text), "\(outcome)")
      }
    }
  }
}
