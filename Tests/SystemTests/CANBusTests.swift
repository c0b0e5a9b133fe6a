// Listening to a simulated bus, end to end: import of a DBC file, values, frames, logs of can-utils.

import Foundation
import Testing

extension EndToEnd {
  @Suite("CAN bus") struct CANBusTests {
    /// Starts a bus, and writes a configuration with the signals of its DBC file.
    private func bus(_ rig: Rig, _ arguments: String..., on place: String = "slcan:tcp:127.0.0.1:0") throws {
      let dbc = rig.run("\(Rig.programs)/vehiclesim", ["dbc"])
      try rig.write(dbc.output, to: "\(rig.directory)/car.dbc")
      try FileManager.default.createDirectory(atPath: "\(rig.directory)/signals.d", withIntermediateDirectories: true)
      let imported = rig.vehiclectl("import", "\(rig.directory)/car.dbc", "--output", "\(rig.directory)/signals.d/car.toml")
      #expect(imported.status == 0 && imported.errors.contains("12 signals, 0 not converted"), "\(imported)")
      let program = try rig.start("vehiclesim", ["can", "--on", place] + arguments)
      try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
      let link = program.stdout.split(separator: "\n").first.map(String.init) ?? ""
      try rig.write("[device.bus]\nkind = \"can\"\nlink = \"\(link)\"\nbit-rate = 500000\n")
    }

    @Test(arguments: ["slcan:tcp:127.0.0.1:0", "slcan:pty"]) func `the signals of a DBC file are published`(_ place: String) throws {
      let rig = try Rig()
      try bus(rig, on: place)
      let daemon = try rig.daemon()
      // An adapter that replies late is opened again after 10 s.
      #expect(wait(seconds: 30) { rig.get("bus.vehicle-speed") != nil && rig.get("bus.pressure-rear-right") == "2.33" }, "\(daemon.stderr)")
      #expect(rig.get("bus.coolant-temperature").flatMap(Double.init).map { (90...110).contains($0) } == true)
      #expect(rig.vehiclectl("status", "bus").output.contains("listening"))
      #expect(rig.vehiclectl("doctor").output.contains("up, listening"))
      #expect(wait { (rig.get("bus.frame-rate").flatMap(Double.init) ?? 0) > 100 })
      #expect(rig.vehiclectl("set", "bus.vehicle-speed", "5").status != 0)
    }

    @Test func `a known vehicle is listened to`() throws {
      let rig = try Rig()
      let program = try rig.start("vehiclesim", ["can", "--on", "slcan:tcp:127.0.0.1:0", "--car", "tesla-model-3"])
      try #require(wait { program.stdout.contains("\n") }, "the simulator prints nothing: \(program.stderr)")
      let link = program.stdout.split(separator: "\n").first.map(String.init) ?? ""
      try rig.write("[device.tesla]\nkind = \"can\"\nlink = \"\(link)\"\nvehicle = \"tesla-model-3\"\n")
      let daemon = try rig.daemon()
      #expect(
        wait(seconds: 30) { (rig.get("tesla.speed").flatMap(Double.init) ?? 0) > 20 && rig.get("tesla.gear") == "drive" },
        "\(daemon.stderr)")
      #expect(rig.get("tesla.state-of-charge") != nil && rig.get("tesla.battery-power") != nil && rig.get("tesla.range") != nil)
      #expect(rig.vehiclectl("status", "tesla").output.contains("listening"))
    }

    @Test func `frames of CAN FD in a log are skipped, and counted`() throws {
      let rig = try Rig()
      let log = "\(rig.directory)/fd.log"
      try rig.write("(1.000000) can0 123##1AABB\n(1.010000) can0 0C9#0011\n(1.020000) can0 12345678##0\n", to: log)
      let program = try rig.start("vehiclesim", ["can", "--on", "slcan:tcp:127.0.0.1:0", "--log", log])
      try #require(wait { program.stdout.contains("\n") }, "\(program.stderr)")
      #expect(
        wait { program.stderr == "vehiclesim: \(log): 2 frames of CAN FD are skipped: slcan has only classical CAN\n" }, "\(program.stderr)"
      )
      try rig.write("(1.000000) can0 123##1AABB\n", to: log)
      let other = try rig.start("vehiclesim", ["can", "--on", "slcan:tcp:127.0.0.1:0", "--log", log])
      #expect(other.status(within: 10) == 1 && other.stderr.contains("the log has no received frames of classical CAN"), "\(other.stderr)")
    }

    @Test(arguments: [
      ("no-traffic", "no frames on the CAN bus: switch the vehicle on"), ("ignores-listening", "does not acknowledge the command L"),
    ]) func `a silent bus is diagnosed`(_ fault: String, _ message: String) throws {
      let rig = try Rig()
      try bus(rig, "--fault", fault)
      _ = try rig.daemon()
      #expect(wait { rig.vehiclectl("doctor").output.contains(message) })
      #expect(rig.vehiclectl("get", "bus.vehicle-speed").errors.contains("no frame 3E9 received yet"))
    }

    @Test func `frames of kind obd are recorded with the time of the clock, however long the link has been up`() throws {
      let rig = try Rig()
      let (_, link) = try rig.simulator(on: "slcan:tcp:127.0.0.1:0")
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\n")
      let begin = Date().timeIntervalSince1970
      let daemon = try rig.daemon()
      #expect(wait(seconds: 30) { rig.get("ev.state-of-charge") != nil }, "\(daemon.stderr)")
      _ = wait { Date().timeIntervalSince1970 > begin + 3 }
      let log = "\(rig.directory)/ev.log"
      #expect(rig.vehiclectl("record", "--candump", "ev", log, "--seconds", "1").status == 0)
      let times = try String(contentsOfFile: log, encoding: .utf8).matches(of: /\((\d+\.\d+)\)/).compactMap { Double($0.output.1) }
      let end = Date().timeIntervalSince1970
      #expect(times.count > 20 && times.allSatisfy { (begin - 1...end + 0.1).contains($0) }, "\(begin) \(times.suffix(3)) \(end)")
      #expect(times.last.map { $0 > end - 2 } == true, "\(times.suffix(3)) \(end)")
      let frames = rig.vehiclectl("watch", "ev", "--frames", "--json", "--count", "100").output
      let shown = frames.matches(of: /"time":(\d+)/).compactMap { Double($0.output.1) }
      #expect(shown.count == 100 && shown.allSatisfy { (begin - 1...Date().timeIntervalSince1970 + 0.1).contains($0 / 1e6) })
    }

    @Test func `frames are shown, and recorded as a log of can-utils that plays back`() throws {
      let rig = try Rig()
      try bus(rig)
      let daemon = try rig.daemon()
      #expect(wait { rig.get("bus.vehicle-speed") != nil }, "\(daemon.stderr)")
      let frames = rig.vehiclectl("watch", "bus", "--frames", "--json", "--count", "50")
      #expect(frames.status == 0 && frames.output.split(separator: "\n").count == 50)
      #expect(frames.output.contains("\"id\":\"0C9\"") && frames.output.contains("\"kind\":\"data\""))
      #expect(rig.vehiclectl("watch", "--frames").status == 2)
      let log = "\(rig.directory)/drive.log"
      let recorded = rig.vehiclectl("record", "bus", log, "--seconds", "2")
      #expect(recorded.status == 0, "\(recorded)")
      let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
      let areFrames = lines.allSatisfy { $0.contains(/^\(\d{10}\.\d{6}\) bus [0-9A-F]{3,8}#[0-9A-F]*$/) }
      #expect(lines.count > 100 && areFrames, "\(lines.prefix(3))")
      #expect(daemon.end() == 0)
      try rig.write("[device.bus]\nkind = \"can\"\nlink = \"replay:\(log)?speed=0.2\"\n")
      _ = try rig.daemon()
      #expect(wait { rig.get("bus.vehicle-speed") != nil })
      #expect(wait { rig.vehiclectl("get", "bus.vehicle-speed").errors.contains("the recording has ended") })
    }
  }
}
